import { createHmac } from "node:crypto";
import { eq } from "drizzle-orm";
import { type App, forApp } from "#app.ts";
import { hmac, sameSecret } from "#lib/base";
import { type MuxUploadRow, type UploadRow, uploads } from "#storage/db/schema.ts";

const STATUSES = {
  pending: "waiting",
  completed: "asset_created",
  failed: "errored",
  aborted: "cancelled",
  expired: "timed_out",
} as const;

/** Not the key of tokens or of URLs of storage. */
const keyOf = forApp((app) => ({
  key: createHmac("sha256", app.secrets.signing_secret).update("direct uploads").digest("base64url"),
}));
/** The secret in the URL of an upload: it is derived, so that each response can contain the URL. */
const secretOf = (app: App, name: string) => hmac(keyOf(app).key, name);
export const isSecretOf = (app: App, name: string, secret: string) => sameSecret(secretOf(app, name), secret);
const urlOf = (app: App, { name }: MuxUploadRow) => `${app.baseUrl()}/mux/upload/${name}/${secretOf(app, name)}`;

/** The upload of ours that receives the bytes; undefined before the first ones, and after its asset was deleted. */
export const nativeUpload = async (app: App, { uploadId }: MuxUploadRow): Promise<UploadRow | undefined> =>
  uploadId === null ? undefined : app.db.select().from(uploads).where(eq(uploads.id, uploadId)).get();

/** `native`: of `nativeUpload`. */
export function statusOf(app: App, row: MuxUploadRow, native: UploadRow | undefined) {
  if (row.canceledAt !== null) return "cancelled" as const;
  const now = app.clock.now();
  if (row.uploadId === null) return row.expiresAt <= now ? ("timed_out" as const) : ("waiting" as const);
  if (!native) return "asset_created" as const;
  return native.status === "pending" && native.expiresAt <= now ? ("timed_out" as const) : STATUSES[native.status];
}

/** A direct upload as Mux shows it. */
export async function toMuxUpload(app: App, row: MuxUploadRow) {
  const status = statusOf(app, row, await nativeUpload(app, row));
  return {
    id: row.name,
    status,
    timeout: row.timeoutSeconds,
    cors_origin: row.corsOrigin,
    new_asset_settings: row.settings,
    ...(status === "waiting" && { url: urlOf(app, row) }),
    ...(status === "asset_created" && row.assetId !== null && { asset_id: String(row.assetId) }),
    ...(status === "errored" && { error: { type: "upload_failed", message: "The file could not be received." } }),
  };
}

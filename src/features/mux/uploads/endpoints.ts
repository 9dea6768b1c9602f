import { and, desc, eq, inArray, isNull, lt, sql } from "drizzle-orm";
import { notFound, randomName } from "#lib/base";
import { emit } from "#platform/events/emit.ts";
import { describeCall } from "#platform/http/audit.ts";
import { byId } from "#platform/http/paging.ts";
import { storageOf } from "#platform/http/storage.ts";
import { requireFewerRows } from "#platform/limits/row-limit.ts";
import type { Db } from "#storage/db/open.ts";
import { type MuxUploadRow, muxUploads } from "#storage/db/schema.ts";
import { nativeFields, requireVideo } from "../assets/create.ts";
import { type Endpoint, endpoint, type MuxCall } from "../endpoint.ts";
import { invalidParameter, notSupported } from "../errors.ts";
import { sameOf } from "../fields.ts";
import { muxPage } from "../paging.ts";
import { nativeUpload, statusOf, toMuxUpload } from "./record.ts";
import { UploadCreate, UploadList } from "./schema.ts";

const path = "/video/v1/uploads";
const WRITES = { scopes: ["assets:write"] } as const;
const NAME_LENGTH = 44;
/** Uploads of a tenant that have not begun. A new one replaces the oldest that were canceled or have expired. */
const MAX_UNUSED = 10_000;
/** Uploads that were never used are deleted some time after their end, a few with each new one. */
const KEPT_MS = 30 * 24 * 3_600_000;
const DELETED_AT_ONCE = 100;

async function requireUpload({ app, caller, params }: MuxCall, db: Db = app.db): Promise<MuxUploadRow> {
  const own = and(eq(muxUploads.name, params.id ?? ""), eq(muxUploads.tenantId, caller.tenantId));
  return (await db.select().from(muxUploads).where(own).get()) ?? notFound("upload");
}

export const uploadEndpoints: readonly Endpoint[] = [
  endpoint({
    ...WRITES,
    method: "POST",
    path,
    operation: "createDirectUpload",
    status: 201,
    async handle(call) {
      const { app, caller, context } = call;
      storageOf(app);
      await context.limit("uploads");
      const { cors_origin: corsOrigin, timeout, new_asset_settings: given } = await call.body(UploadCreate);
      const { inputs: several, input, ...settings } = given;
      const inputs = sameOf({ inputs: several, input }) ?? [];
      if (inputs.length > 1 || inputs[0]?.url !== undefined || inputs[0]?.type === "text")
        notSupported("new_asset_settings.inputs other than the uploaded file");
      if (inputs[0]?.start_time !== undefined || inputs[0]?.end_time !== undefined)
        notSupported("new_asset_settings.inputs.start_time and end_time");
      requireVideo(inputs[0], "new_asset_settings.inputs.0");
      nativeFields(settings);
      const now = app.clock.now();
      const name = randomName(NAME_LENGTH);
      describeCall({ targetId: name });
      const row = await app.write(async (tx) => {
        await deleteUnused(tx, caller.tenantId, now - KEPT_MS);
        await requireFewerRows(tx, {
          table: "mux_uploads",
          where: sql`tenant_id = ${caller.tenantId} AND upload_id IS NULL`,
          max: MAX_UNUSED,
          ended: sql`canceled_at IS NOT NULL OR expires_at <= ${now}`,
          code: "upload_limit_reached",
          message: `There are ${MAX_UNUSED} uploads that have not begun; cancel some, or wait until they expire.`,
        });
        const created = await tx
          .insert(muxUploads)
          .values({
            tenantId: caller.tenantId,
            name,
            corsOrigin,
            timeoutSeconds: timeout,
            expiresAt: now + timeout * 1000,
            createdAt: now,
            updatedAt: now,
            settings: { ...settings, ...(inputs.length > 0 && { inputs }) },
          })
          .returning()
          .get();
        await emit(tx, app, "video.direct_upload.created", uploadEvent(created));
        return created;
      });
      return toMuxUpload(app, row);
    },
  }),
  endpoint({
    ...WRITES,
    method: "GET",
    path,
    hasQuery: true,
    handle(call) {
      const { app, caller } = call;
      const query = call.query(UploadList);
      const batches = byId(undefined, (before, limit) =>
        app.db
          .select()
          .from(muxUploads)
          .where(
            and(eq(muxUploads.tenantId, caller.tenantId), before === undefined ? undefined : lt(muxUploads.id, before)),
          )
          .orderBy(desc(muxUploads.id))
          .limit(limit + 1)
          .all(),
      );
      return muxPage(call, query, { batches, toWire: (row) => toMuxUpload(app, row) });
    },
  }),
  endpoint({
    ...WRITES,
    method: "GET",
    path: `${path}/:id`,
    handle: async (call) => toMuxUpload(call.app, await requireUpload(call)),
  }),
  endpoint({
    ...WRITES,
    method: "PUT",
    path: `${path}/:id/cancel`,
    operation: "cancelDirectUpload",
    hasNoBody: true,
    async handle(call) {
      const { app } = call;
      const row = await requireUpload(call);
      const status = statusOf(app, row, await nativeUpload(app, row));
      if (status !== "waiting") invalidParameter("id", `is an upload that is ${status}`);
      const canceled = await app.write(async (tx) => {
        const current = await requireUpload(call, tx);
        const now = app.clock.now();
        const set = { canceledAt: now, updatedAt: now };
        await emit(tx, app, "video.direct_upload.canceled", uploadEvent(current));
        return tx.update(muxUploads).set(set).where(eq(muxUploads.id, current.id)).returning().get();
      });
      // It receives bytes already: its asset is deleted with them.
      if (canceled.assetId !== null) await call.native("DELETE", `/api/v1/assets/${canceled.assetId}`);
      return toMuxUpload(app, canceled);
    },
  }),
];

const uploadEvent = ({ tenantId, name }: MuxUploadRow) => ({ tenantId, data: { direct_upload: name } });

async function deleteUnused(tx: Db, tenantId: number, before: number): Promise<void> {
  const { id, uploadId, expiresAt } = muxUploads;
  const unused = and(eq(muxUploads.tenantId, tenantId), isNull(uploadId), lt(expiresAt, before));
  const old = await tx.select({ id }).from(muxUploads).where(unused).limit(DELETED_AT_ONCE).all();
  const ids = old.map((row) => row.id);
  if (ids.length > 0) await tx.delete(muxUploads).where(inArray(id, ids));
}

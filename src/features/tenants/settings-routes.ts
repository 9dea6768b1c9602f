import { eq } from "drizzle-orm";
import * as v from "valibot";
import { HttpError, notFound, sha256 } from "#lib/base";
import { readBytes } from "#platform/http/body.ts";
import { RecordIdInPath } from "#platform/http/parameters.ts";
import { route } from "#platform/http/route.ts";
import { PathId } from "#platform/http/schemas.ts";
import { admit } from "#platform/limits/expensive.ts";
import type { Db } from "#storage/db/open.ts";
import { type TenantRow, tenantLogos } from "#storage/db/schema.ts";
import { hasPngChecksums, pngSize } from "../encoding-profiles/png.ts";
import { requirePng } from "../encoding-profiles/watermark.ts";
import { requireActiveTenant } from "./active.ts";
import { changeTenant, ownTenant, requireOperatorsFields } from "./change.ts";
import { putTenant, refuseDeleting } from "./queries.ts";
import { withinStorage } from "./quota.ts";
import { Tenant, TenantSettings, toTenant } from "./schema.ts";

const MAX_LOGO_BYTES = 256 * 1024;
/** Pixels; larger ones would take much memory in browsers. */
const MAX_LOGO_SIDE = 2048;

const path = "/api/v1/tenants/:id";
const shared = { tag: "Tenants", forAdmins: true, params: v.object({ id: RecordIdInPath }) } as const;
const errors = { 403: ["forbidden_role"], 404: ["not_found"] };

const RawLogo = v.pipe(
  v.string(),
  v.metadata({ openapi: { type: "string", format: "binary" } }),
  v.description("At most 256 KiB, and 2048 pixels wide and high"),
);

/** What the admins of a tenant change themselves. */
export const tenantSettingsRoutes = [
  route({
    ...shared,
    method: "GET",
    path,
    operationId: "getTenantSettings",
    summary: "Get a tenant with its settings",
    responses: { 200: Tenant },
    errors,
    handle: async ({ app, caller, params }) =>
      toTenant(await ownTenant(app.db, caller, String(params.id)), app.baseUrl()),
  }),
  route({
    ...shared,
    method: "PATCH",
    path,
    audited: true,
    operationId: "updateTenantSettings",
    summary: "Update the settings of a tenant; `player` is merged",
    body: TenantSettings,
    responses: { 200: Tenant },
    errors: { ...errors, 409: ["tenant_deleting"], 422: ["encoding_profile_unknown", "watermark_missing"] },
    handle: ({ app, caller, params, body }) =>
      app.write(async (tx) => {
        const tenant = await ownTenant(tx, caller, String(params.id));
        const changed = await changeTenant(tx, app, tenant, requireOperatorsFields(app, tenant, body));
        return toTenant(changed, app.baseUrl());
      }),
  }),
  route({
    ...shared,
    method: "PUT",
    path: `${path}/logo`,
    audited: true,
    operationId: "setTenantLogo",
    summary: "Set the logo that the player shows, a PNG image",
    // An image may decompress to 32 MiB.
    expensive: "posters",
    raw: true,
    rawBody: { "image/png": RawLogo },
    responses: { 200: Tenant },
    errors: {
      ...errors,
      400: ["incomplete_body"],
      403: ["forbidden_role", "quota_exceeded"],
      409: ["tenant_deleting"],
      413: ["payload_too_large"],
      415: ["unsupported_media_type"],
      422: ["invalid_image"],
    },
    async handle(context) {
      const { app, caller, params } = context;
      const { id } = refuseDeleting(await ownTenant(app.db, caller, String(params.id)));
      const permit = await admit(app, "posters", id, context.signal);
      let bytes: Uint8Array;
      try {
        bytes = await readBytes(context, MAX_LOGO_BYTES);
        await requireLogo(bytes, context.headers.get("content-type"));
      } finally {
        permit.release();
      }
      return app.write(async (tx) => {
        const tenant = refuseDeleting(await ownTenant(tx, caller, String(params.id)));
        const row = await withinStorage(tx, app, id, () => putLogo(tx, tenant, bytes, app.clock.now()));
        return toTenant(row, app.baseUrl());
      });
    },
  }),
  route({
    ...shared,
    method: "DELETE",
    path: `${path}/logo`,
    audited: true,
    operationId: "deleteTenantLogo",
    summary: "Delete the logo; repeatable",
    responses: { 200: Tenant },
    errors: { ...errors, 409: ["tenant_deleting"] },
    handle: ({ app, caller, params }) =>
      app.write(async (tx) => {
        const tenant = refuseDeleting(await ownTenant(tx, caller, String(params.id)));
        return toTenant(await putLogo(tx, tenant, null, app.clock.now()), app.baseUrl());
      }),
  }),
  route({
    method: "GET",
    path: "/logos/:tenant/:file",
    credential: "none",
    tag: "Pages",
    hidden: true,
    summary: "Get the logo of a tenant",
    params: v.object({ tenant: PathId, file: v.pipe(v.string(), v.regex(/^[0-9a-f]{64}\.png$/)) }),
    // The element is embedded in pages of other sites.
    cors: { allowHeaders: "", exposeHeaders: "" },
    responses: { 200: null },
    async handle({ app, params }) {
      const logo = await app.db.select().from(tenantLogos).where(eq(tenantLogos.tenantId, params.tenant)).get();
      if (!logo || `${logo.sha256}.png` !== params.file) return notFound("logo");
      await requireActiveTenant(app, params.tenant);
      return new Response(Buffer.from(logo.image, "base64"), {
        headers: {
          "content-type": "image/png",
          // The URL contains a hash of the image.
          "cache-control": "public, max-age=31536000, immutable",
          "content-security-policy": "default-src 'none'",
          "cross-origin-resource-policy": "cross-origin",
          "x-content-type-options": "nosniff",
        },
      });
    },
  }),
];

/** The content counts. Throws 415 for what is declared as something else, and 422 `invalid_image`. */
async function requireLogo(bytes: Uint8Array, type: string | null): Promise<void> {
  const image = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const isPng = pngSize(image) !== null;
  if (!isPng && type !== null && !/^(image\/png|application\/octet-stream)\b/i.test(type))
    throw new HttpError(415, "unsupported_media_type", "Send a PNG image with Content-Type: image/png.");
  await requirePng(bytes, MAX_LOGO_SIDE);
  if (!hasPngChecksums(image)) throw new HttpError(422, "invalid_image", "The PNG image is damaged; export it again.");
}

/** Replaces the logo; null removes it. */
async function putLogo(tx: Db, tenant: TenantRow, bytes: Uint8Array | null, now: number): Promise<TenantRow> {
  await tx.delete(tenantLogos).where(eq(tenantLogos.tenantId, tenant.id));
  const logo = bytes && sha256(bytes);
  if (bytes && logo) {
    const image = Buffer.from(bytes).toString("base64");
    await tx.insert(tenantLogos).values({ tenantId: tenant.id, sha256: logo, image, bytes: bytes.length });
  }
  return putTenant(tx, { ...tenant, logo, updatedAt: now });
}

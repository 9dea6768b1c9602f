import * as v from "valibot";
import type { App } from "#app.ts";
import { HttpError } from "#lib/base";
import { route } from "#platform/http/route.ts";
import { QueryId } from "#platform/http/schemas.ts";
import { streamed, streamedJson, streamOf } from "#platform/http/stream.ts";
import { admit } from "#platform/limits/expensive.ts";
import { ASSET_TEXT_NAMES } from "#protocol/asset-fields.ts";
import { describedAs } from "#protocol/fields.ts";
import { FileField, TenantIdField } from "#protocol/record-fields.ts";
import { requireTenant } from "../tenants/queries.ts";
import { spool } from "./csv-file.ts";
import { ExportedAsset, ExportQuery, exportCsv, exportJson } from "./export.ts";
import { type ImportLock, lockImport } from "./import/lock.ts";
import { ImportResult } from "./import/result.ts";
import { importCsv } from "./import/run.ts";

const path = "/api/v1/assets";
const TEXTS = ASSET_TEXT_NAMES.join(", ");
const attachment = (name: string) => ({ "content-disposition": `attachment; filename="${name}"` });

export const assetCsvRoutes = [
  route({
    method: "GET",
    path: `${path}/export`,
    expensive: "export",
    scope: "assets:read",
    tag: "Assets",
    operationId: "exportAssets",
    summary: `Export ${TEXTS}, tags and filename of all assets as CSV or JSON`,
    query: ExportQuery,
    responses: { 200: v.array(ExportedAsset) },
    produces: ["text/csv"],
    async handle(context) {
      const { app, caller, query } = context;
      if (query.format === "json")
        return streamedJson(context, exportJson(app, caller, query.tenant_id), attachment("assets.json"));
      const headers = { "content-type": "text/csv; charset=utf-8", ...attachment("assets.csv") };
      return streamed(context, exportCsv(app, caller, query.tenant_id), headers);
    },
  }),
  route({
    method: "POST",
    path: `${path}/import`,
    expensive: "import",
    scope: "assets:write",
    tag: "Assets",
    operationId: "importAssets",
    summary: `Import ${TEXTS} and tags of assets from CSV`,
    raw: true,
    rawBody: {
      "text/csv": v.string(),
      "multipart/form-data": v.object({
        file: FileField,
        tenant_id: describedAs(TenantIdField, v.optional(v.string())),
      }),
    },
    query: v.object({ tenant_id: v.optional(v.pipe(QueryId, v.description("With the admin token"))) }),
    responses: { 200: ImportResult },
    errors: {
      404: ["not_found"],
      409: ["import_in_progress"],
      413: ["payload_too_large"],
      415: ["unsupported_media_type"],
      422: ["document_too_complex"],
    },
    async handle(context) {
      const { app, caller, query, signal } = context;
      const isNamed = caller.kind !== "admin" || query.tenant_id !== undefined;
      // Before the body is read where possible: a second import is refused immediately.
      let lock = isNamed ? await lockImport(app, (await requireTenant(app.db, caller, query.tenant_id)).id) : null;
      try {
        const { file, fields } = await spool(app, context);
        try {
          const tenant = await requireTenant(app.db, caller, query.tenant_id ?? tenantIn(fields));
          lock ??= await lockImport(app, tenant.id);
          const result = await runQueued(app, lock, (importLock) => importCsv(app, importLock, file, signal), signal);
          const response = streamedJson(context, result.json());
          streamOf(response)?.once("close", () => result.close().catch(() => {}));
          return response;
        } finally {
          await file.close();
        }
      } finally {
        await lock?.release();
      }
    },
  }),
];

async function runQueued<T>(app: App, lock: ImportLock, work: (lock: ImportLock) => Promise<T>, signal: AbortSignal) {
  const permit = await admit(app, "import", lock.tenantId, signal);
  try {
    return await work(lock);
  } finally {
    permit.release();
  }
}

function tenantIn({ tenant_id }: Record<string, string>): number | undefined {
  if (tenant_id === undefined || tenant_id === "") return undefined;
  if (/^\d{1,15}$/.test(tenant_id)) return Number(tenant_id);
  throw new HttpError(422, "parameter_missing", "tenant_id: must be an integer", {
    details: { tenant_id: ["must be an integer"] },
  });
}

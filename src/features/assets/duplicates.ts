import { and, desc, eq, ne } from "drizzle-orm";
import * as v from "valibot";
import { HttpError } from "#lib/base";
import type { Caller } from "#platform/http/caller.ts";
import { QueryId, Sha256, Text } from "#platform/http/schemas.ts";
import { AssetId, ExternalIdField, TitleField } from "#protocol/record-fields.ts";
import type { Db } from "#storage/db/open.ts";
import { assets } from "#storage/db/schema.ts";
import { requireTenant } from "../tenants/queries.ts";

const MOST = 100;

export const DuplicateQuery = v.object({
  sha256: v.optional(v.pipe(Sha256, v.description("SHA-256 of the file, in hexadecimal"))),
  filename: v.optional(v.pipe(Text(500), v.description("With bytes: the file's name"))),
  bytes: v.optional(v.pipe(QueryId, v.description("With filename: the file's size"))),
  tenant_id: v.optional(v.pipe(QueryId, v.description("With the admin token"))),
});
export const Duplicates = v.object({
  duplicates: v.pipe(
    v.array(
      v.object({
        asset_id: AssetId,
        external_id: ExternalIdField,
        title: TitleField,
        match: v.pipe(v.picklist(["sha256", "name_size"]), v.description("What the asset has in common with the file")),
      }),
    ),
    v.description("Assets with the same content"),
  ),
});

/**
 * The tenant's assets with the same content hash, then those with the same name and size; newest first, up to 100 of
 * each.
 */
export async function findDuplicates(db: Db, caller: Caller, query: v.InferOutput<typeof DuplicateQuery>) {
  const { sha256, filename, bytes } = query;
  if (sha256 === undefined && (filename === undefined || bytes === undefined))
    throw new HttpError(422, "parameter_missing", "Set sha256, or filename and bytes.");
  const { id: tenantId } = await requireTenant(db, caller, query.tenant_id);
  const find = (same: ReturnType<typeof and>) =>
    db
      .select({ asset_id: assets.id, external_id: assets.externalId, title: assets.title })
      .from(assets)
      // A failed upload has no content.
      .where(and(eq(assets.tenantId, tenantId), same, ne(assets.inputStatus, "failed")))
      .orderBy(desc(assets.id))
      .limit(MOST)
      .all();
  const bySum = sha256 === undefined ? [] : await find(eq(assets.sourceSha256, sha256));
  const known = new Set(bySum.map((row) => row.asset_id));
  const byName =
    filename === undefined || bytes === undefined
      ? []
      : await find(and(eq(assets.originalFilename, filename), eq(assets.sourceBytes, bytes)));
  return {
    duplicates: [
      ...bySum.map((row) => ({ ...row, match: "sha256" as const })),
      ...byName.filter((row) => !known.has(row.asset_id)).map((row) => ({ ...row, match: "name_size" as const })),
    ],
  };
}

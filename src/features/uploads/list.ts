import { and, desc, eq, lt, sql } from "drizzle-orm";
import * as v from "valibot";
import type { App } from "#app.ts";
import { UPLOAD_STATUSES } from "#model/enums.ts";
import { type Caller, ownerOf } from "#platform/http/caller.ts";
import { readPage } from "#platform/http/list-cache.ts";
import { oneOf, Paging, QueryId } from "#platform/http/schemas.ts";
import { describedAs } from "#protocol/fields.ts";
import { StatusField } from "#protocol/record-fields.ts";
import { type Given, preparedFor } from "#storage/db/prepared.ts";
import { assets, type UploadRow, uploads } from "#storage/db/schema.ts";

export const UploadQuery = v.object({
  ...Paging,
  status: describedAs(StatusField, v.optional(oneOf(UPLOAD_STATUSES))),
  tenant_id: v.optional(v.pipe(QueryId, v.description("With the admin token"))),
});

type Listed = { id: number; upload: UploadRow; externalId: string };

const uploadsPage = preparedFor((db, given: Given<"owner" | "tenantId" | "status" | "before">) =>
  db
    .select({ id: uploads.id, upload: uploads, externalId: assets.externalId })
    .from(uploads)
    .innerJoin(assets, eq(assets.id, uploads.assetId))
    .where(
      and(
        given.owner && eq(uploads.tenantId, given.owner),
        given.tenantId && eq(uploads.tenantId, given.tenantId),
        given.status && eq(uploads.status, given.status),
        given.before && lt(uploads.id, given.before),
      ),
    )
    .orderBy(desc(uploads.id))
    .limit(sql.placeholder("limit"))
    .prepare(),
);

/** Newest first, up to `limit` + 1, which shows the caller whether there are more. */
export const listUploads = (
  app: App,
  caller: Caller,
  query: v.InferOutput<typeof UploadQuery>,
  { limit, before }: { limit: number; before?: number | undefined },
): Promise<Listed[]> => {
  const filter = { owner: ownerOf(caller), tenantId: query.tenant_id, status: query.status };
  return readPage(app, uploadsPage, { ...filter, before, limit: limit + 1 });
};

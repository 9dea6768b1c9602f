import { and, desc, eq, lt } from "drizzle-orm";
import * as v from "valibot";
import type { Db } from "../../../storage/db/open.ts";
import { assets, type UploadRow, uploads } from "../../../storage/db/schema.ts";
import { type Caller, ownedBy } from "../../http/caller.ts";
import { oneOf, Paging, QueryId } from "../../http/schemas.ts";
import { UPLOAD_STATUSES } from "../../lib/enums.ts";

export const UploadQuery = v.object({
  ...Paging,
  status: v.optional(oneOf(UPLOAD_STATUSES)),
  tenant_id: v.optional(v.pipe(QueryId, v.description("With the admin token"))),
});

type Listed = { id: number; upload: UploadRow; externalId: string };

/** Newest first, up to `limit` + 1, which shows the caller whether there are more. */
export const listUploads = (
  db: Db,
  caller: Caller,
  query: v.InferOutput<typeof UploadQuery>,
  { limit, before }: { limit: number; before?: number | undefined },
): Promise<Listed[]> =>
  db
    .select({ id: uploads.id, upload: uploads, externalId: assets.externalId })
    .from(uploads)
    .innerJoin(assets, eq(assets.id, uploads.assetId))
    .where(
      and(
        ownedBy(caller, uploads.tenantId),
        query.tenant_id === undefined ? undefined : eq(uploads.tenantId, query.tenant_id),
        query.status && eq(uploads.status, query.status),
        before === undefined ? undefined : lt(uploads.id, before),
      ),
    )
    .orderBy(desc(uploads.id))
    .limit(limit + 1)
    .all();

import * as v from "valibot";
import type { CollectionRow } from "../../../storage/db/schema.ts";
import { Id, Name, Text, Time } from "../../http/schemas.ts";
import { iso } from "../../lib/clock.ts";
import { Slug } from "../tenants/schema.ts";

const MAX_POSITION = 2_147_483_647;
const Position = v.pipe(
  v.number("must be an integer"),
  v.integer("must be an integer"),
  v.minValue(-MAX_POSITION, `must be at least -${MAX_POSITION}`),
  v.maxValue(MAX_POSITION, `must be at most ${MAX_POSITION}`),
);
const optional = {
  description: v.optional(v.nullable(Text(10_000))),
  position: v.optional(Position),
  parent_id: v.optional(v.nullable(Id)),
};

export const CollectionWrite = v.object({
  tenant_id: Id,
  collection: v.object({ name: Name(500), slug: Slug, ...optional }, "must be an object"),
});
export const CollectionPatch = v.object({
  collection: v.object({ name: v.optional(Name(500)), slug: v.optional(Slug), ...optional }, "must be an object"),
});

export const Collection = v.pipe(
  v.object({
    id: v.number(),
    tenant_id: v.number(),
    parent_id: v.nullable(v.number()),
    name: v.string(),
    slug: v.string(),
    description: v.nullable(v.string()),
    position: v.number(),
    asset_count: v.number(),
    created_at: Time,
    updated_at: Time,
  }),
  v.title("Collection"),
);
/** A collection with its descendants, to any depth. */
export const CollectionNode = v.object({ ...Collection.entries, children: v.array(v.looseObject(Collection.entries)) });

export const toCollection = (row: CollectionRow): v.InferInput<typeof Collection> => ({
  id: row.id,
  tenant_id: row.tenantId,
  parent_id: row.parentId,
  name: row.name,
  slug: row.slug,
  description: row.description,
  position: row.position,
  asset_count: row.assetCount,
  created_at: iso(row.createdAt),
  updated_at: iso(row.updatedAt),
});

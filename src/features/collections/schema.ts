import * as v from "valibot";
import { schemaOf } from "#platform/http/openapi-schema.ts";
import { toRecord } from "#platform/http/records.ts";
import { Id, Name, Text } from "#platform/http/schemas.ts";
import { describedAs } from "#protocol/fields.ts";
import {
  CreatedAt,
  DescriptionField,
  NameField,
  PositionField,
  RecordId,
  SlugField,
  TenantIdField,
  TenantIdFromClient,
  UpdatedAt,
} from "#protocol/record-fields.ts";
import type { CollectionRow } from "#storage/db/schema.ts";
import { Slug } from "../tenants/schema.ts";

const MAX_POSITION = 2_147_483_647;
const Position = v.pipe(
  v.number("must be an integer"),
  v.integer("must be an integer"),
  v.minValue(-MAX_POSITION, `must be at least -${MAX_POSITION}`),
  v.maxValue(MAX_POSITION, `must be at most ${MAX_POSITION}`),
);
const ParentId = v.pipe(v.number(), v.description("Id of the parent collection; null at the top level"));
const optional = {
  description: describedAs(DescriptionField, v.optional(v.nullable(Text(10_000)))),
  position: describedAs(PositionField, v.optional(Position)),
  parent_id: describedAs(ParentId, v.optional(v.nullable(Id))),
};
const IsPublic = v.pipe(
  v.boolean("must be a boolean"),
  v.description("Whether `public_url` shows the public videos of the collection to anyone"),
);

export const CollectionWrite = v.object({
  tenant_id: TenantIdFromClient,
  collection: v.pipe(
    v.object(
      { name: describedAs(NameField, Name(500)), slug: describedAs(SlugField, Slug), ...optional },
      "must be an object",
    ),
    v.description("Fields of the collection"),
  ),
});
const Patch = v.object({
  collection: v.pipe(
    v.object(
      {
        name: describedAs(NameField, v.optional(Name(500))),
        slug: describedAs(SlugField, v.optional(Slug)),
        ...optional,
        is_public: v.optional(IsPublic),
      },
      "must be an object",
    ),
    v.description("Fields of the collection"),
  ),
});
/** `is_public` may be sent without the wrapper. */
export const CollectionPatch = v.pipe(
  v.unknown(),
  v.metadata({ openapi: schemaOf(Patch) }),
  v.transform((body) => {
    if (typeof body !== "object" || body === null || !("is_public" in body)) return body;
    const { collection = {}, is_public } = body as { collection?: unknown; is_public: unknown };
    const isWrapper = typeof collection === "object" && collection !== null && !Array.isArray(collection);
    return { collection: isWrapper ? { is_public, ...collection } : collection };
  }),
  Patch,
);

export const Collection = v.pipe(
  v.object({
    id: RecordId,
    tenant_id: TenantIdField,
    parent_id: v.nullable(ParentId),
    name: NameField,
    slug: SlugField,
    description: v.nullable(DescriptionField),
    position: PositionField,
    asset_count: v.pipe(v.number(), v.description("Number of assets in the collection, without its subcollections")),
    is_public: IsPublic,
    public_url: v.pipe(v.nullable(v.string()), v.description("Its page; null while it is not public")),
    embed_url: v.pipe(v.nullable(v.string()), v.description("Its playlist, for frames of other sites")),
    feed_url: v.pipe(v.nullable(v.string()), v.description("Its RSS feed")),
    created_at: CreatedAt,
    updated_at: UpdatedAt,
  }),
  v.title("Collection"),
);
/** A collection with its descendants, to any depth. */
export const CollectionNode = v.object({
  ...Collection.entries,
  children: v.pipe(v.array(v.looseObject(Collection.entries)), v.description("Subcollections")),
});

/** The path of a published collection's page, playlist or feed. */
export const collectionPath = (what: "page" | "embed" | "feed", code: string) =>
  what === "embed" ? `/embed/c/${code}` : `/c/${code}${what === "feed" ? "/feed.xml" : ""}`;

/** `baseUrl`: of the server, before the path of its page. */
export const toCollection = (baseUrl: string, row: CollectionRow) =>
  toRecord(Collection, row, {
    public_url: urlOf(baseUrl, "page", row),
    embed_url: urlOf(baseUrl, "embed", row),
    feed_url: urlOf(baseUrl, "feed", row),
  });

const urlOf = (baseUrl: string, what: "page" | "embed" | "feed", { isPublic, publicCode }: CollectionRow) =>
  isPublic && publicCode !== null ? baseUrl + collectionPath(what, publicCode) : null;

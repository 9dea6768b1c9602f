import * as v from "valibot";
import { schemaOf } from "#platform/http/openapi-schema.ts";
import { toRecord } from "#platform/http/records.ts";
import { Id, Name, Text, Time } from "#platform/http/schemas.ts";
import type { CollectionRow } from "#storage/db/schema.ts";
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
const IsPublic = v.pipe(
  v.boolean("must be a boolean"),
  v.description("Whether `public_url` shows the public videos of the collection to anyone"),
);

export const CollectionWrite = v.object({
  tenant_id: Id,
  collection: v.object({ name: Name(500), slug: Slug, ...optional }, "must be an object"),
});
const Patch = v.object({
  collection: v.object(
    { name: v.optional(Name(500)), slug: v.optional(Slug), ...optional, is_public: v.optional(IsPublic) },
    "must be an object",
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
    id: v.number(),
    tenant_id: v.number(),
    parent_id: v.nullable(v.number()),
    name: v.string(),
    slug: v.string(),
    description: v.nullable(v.string()),
    position: v.number(),
    asset_count: v.number(),
    is_public: IsPublic,
    public_url: v.pipe(v.nullable(v.string()), v.description("Its page; null while it is not public")),
    embed_url: v.pipe(v.nullable(v.string()), v.description("Its playlist, for frames of other sites")),
    feed_url: v.pipe(v.nullable(v.string()), v.description("Its RSS feed")),
    created_at: Time,
    updated_at: Time,
  }),
  v.title("Collection"),
);
/** A collection with its descendants, to any depth. */
export const CollectionNode = v.object({ ...Collection.entries, children: v.array(v.looseObject(Collection.entries)) });

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

import { isDeepStrictEqual } from "node:util";
import { and, eq, sql } from "drizzle-orm";
import type * as v from "valibot";
import type { App } from "#app.ts";
import { invalid, notFound } from "#lib/base";
import type { Caller } from "#platform/http/caller.ts";
import { textInputs } from "#protocol/asset-fields.ts";
import type { Db } from "#storage/db/open.ts";
import { prepared } from "#storage/db/prepared.ts";
import { type AssetRow, assets, type PlaybackPolicy, type TagValue } from "#storage/db/schema.ts";
import { withinStorage } from "../tenants/quota.ts";
import { emitAssetEvent } from "./events.ts";
import { getAsset, ownCollection } from "./queries.ts";
import { Asset, type AssetPatch, toAsset } from "./schema.ts";
import { type TextValues, textColumns } from "./texts.ts";

const MAX_TAGS = 100;

type AssetChange = v.InferOutput<typeof AssetPatch>["video_asset"];

/**
 * Sets the given fields. A `collection_id` of another tenant's collection counts as none. Throws 404, and 422 for a field
 * that cannot be changed here unless its value is the current one.
 */
export const updateAsset = (app: App, caller: Caller, id: number, change: AssetChange): Promise<AssetRow> =>
  app.write(async (tx) => {
    const { collection_id: collectionId, playback_policy: policy, expires_at: expiresAt, ...rest } = change;
    const texts = textColumns(rest);
    const fixed = fixedFieldsOf(rest);
    // A single statement where possible: with a remote database each is a round trip.
    const isShort = texts.description == null;
    if (isShort && collectionId === undefined && policy === undefined && expiresAt === undefined && fixed.length === 0)
      return (await putAsset(tx, app, caller, id, texts)) ?? notFound("asset");
    const asset = (await getAsset(tx, caller, id)) ?? notFound("asset");
    requireUnchanged(asset, fixed);
    return putChange(tx, app, asset, {
      ...texts,
      ...(collectionId !== undefined && { collectionId: await ownCollection(tx, asset.tenantId, collectionId) }),
      ...(policy !== undefined && { playbackPolicy: possiblePolicy(asset, policy) }),
      ...(expiresAt !== undefined && { expiresAt: expiryOf(app, asset, expiresAt) }),
    });
  });

const FIXED = Object.keys(Asset.entries).filter((name) => !Object.hasOwn(textInputs, name));
/** The fields of an asset in a request that only the program changes. Names that no asset has are ignored. */
const fixedFieldsOf = (given: Record<string, unknown>): [name: string, value: unknown][] =>
  FIXED.filter((name) => Object.hasOwn(given, name)).map((name) => [name, given[name]]);

function requireUnchanged(asset: AssetRow, given: [name: string, value: unknown][]): void {
  const current: Record<string, unknown> = toAsset(asset);
  for (const [name, value] of given) {
    if (isDeepStrictEqual(value, current[name])) continue;
    const how = name === "tags" ? "is changed with PATCH /api/v1/assets/{id}/tags" : "cannot be changed";
    invalid(`video_asset.${name}`, how);
  }
}

/** Throws 422 for a signed asset that another server delivers. */
export function possiblePolicy(
  { provider }: Pick<AssetRow, "provider">,
  policy: PlaybackPolicy,
  field = "video_asset.playback_policy",
): PlaybackPolicy {
  if (provider === "external_serve" && policy === "signed")
    invalid(field, "must be public with external_serve: vodbox cannot protect media that it does not serve");
  return policy;
}

/** In milliseconds. The current value is accepted whenever it is. */
function expiryOf(app: App, asset: AssetRow, given: string | null): number | null {
  const expiresAt = given === null ? null : Date.parse(given);
  if (expiresAt !== null && expiresAt !== asset.expiresAt && expiresAt <= app.clock.now())
    invalid("video_asset.expires_at", "must be in the future");
  return expiresAt;
}

type Change = Partial<TextValues & Pick<AssetRow, "collectionId" | "tags" | "playbackPolicy" | "expiresAt">>;

/** Prepared statements by the set of columns, of which there are few combinations. */
const putters = prepared((db) => {
  const statements = new Map<string, ReturnType<typeof putter>>();
  return (columns: readonly string[], isOwned: boolean) => {
    const name = `${isOwned} ${columns}`;
    const statement = statements.get(name) ?? putter(db, columns, isOwned);
    statements.set(name, statement);
    return statement;
  };
});

const putter = (db: Db, columns: readonly string[], isOwned: boolean) =>
  db
    .update(assets)
    .set(Object.fromEntries([...columns, "updatedAt"].map((name) => [name, sql.placeholder(name)])))
    .where(
      and(eq(assets.id, sql.placeholder("id")), isOwned ? eq(assets.tenantId, sql.placeholder("tenantId")) : undefined),
    )
    .returning()
    .prepare();

/** Undefined when the caller has no such asset. */
async function putAsset(tx: Db, app: App, caller: Caller, id: number, change: Change): Promise<AssetRow | undefined> {
  const isOwned = caller.kind !== "admin";
  const tenantId = caller.kind === "key" ? caller.tenantId : -1;
  const values = { ...change, updatedAt: app.clock.now(), id, tenantId };
  const changed = await putters(tx)(Object.keys(change), isOwned).get(values);
  if (changed) await emitAssetEvent(tx, app, "video.asset.updated", changed);
  return changed;
}

/** Changes an asset that was read in the same transaction. */
export const putChange = async (tx: Db, app: App, { id, tenantId }: AssetRow, change: Change): Promise<AssetRow> => {
  const put = async () => (await putAsset(tx, app, { kind: "admin" }, id, change)) as AssetRow;
  const hasTexts = change.tags !== undefined || change.description != null;
  return hasTexts ? withinStorage(tx, app, tenantId, put) : put();
};

/** Null removes a tag. Returns null instead of a map with over 100 keys. */
export function mergedTags(tags: Record<string, TagValue>, change: Record<string, TagValue | null>) {
  const merged = new Map<string, TagValue>(Object.entries(tags));
  for (const [key, value] of Object.entries(change)) {
    if (value === null) merged.delete(key);
    else merged.set(key, value);
  }
  return merged.size > MAX_TAGS ? null : Object.fromEntries(merged);
}

/** The tags with those of `found` that they do not have; unchanged where they would be over 100. Null states nothing. */
export function supplementedTags(tags: Record<string, TagValue>, found: Record<string, TagValue | null | undefined>) {
  const missing = Object.entries(found).filter(([key, value]) => value != null && !Object.hasOwn(tags, key));
  return mergedTags(tags, Object.fromEntries(missing) as Record<string, TagValue>) ?? tags;
}

/** Merges tags of an asset that was read in the same transaction. Throws 422 for over 100 keys. */
export const putTags = (tx: Db, app: App, asset: AssetRow, change: Record<string, TagValue | null>) =>
  putChange(tx, app, asset, {
    tags: mergedTags(asset.tags, change) ?? invalid("tags", `must have at most ${MAX_TAGS} keys`),
  });

/** Merges tags; null removes one. Returns the whole map. Throws 422 when it would exceed 100 keys. */
export async function mergeTags(app: App, caller: Caller, id: number, change: Record<string, TagValue | null>) {
  const { tags } = await app.write(async (tx) => {
    const asset = (await getAsset(tx, caller, id)) ?? notFound("asset");
    return putTags(tx, app, asset, change);
  });
  return tags;
}

import { and, or, type SQL, sql } from "drizzle-orm";
import type { SQLiteColumn } from "drizzle-orm/sqlite-core";
import type * as v from "valibot";
import type { App } from "#app.ts";
import { invalid, pacer } from "#lib/base";
import { type Caller, ownerOf } from "#platform/http/caller.ts";
import { readPage } from "#platform/http/list-cache.ts";
import type { Batches } from "#platform/http/paging.ts";
import type { Db } from "#storage/db/open.ts";
import { type Given, preparedFor } from "#storage/db/prepared.ts";
import { readBySize, rowBytes } from "#storage/db/row-bytes.ts";
import { type AssetRow, assets } from "#storage/db/schema.ts";
import { ASSET_SORTS, type AssetSort, cursorOf, ORDERS, type Position } from "./order.ts";
import { readAssets } from "./queries.ts";
import type { AssetFilters } from "./schema.ts";

/** The trigram length of the text index: shorter terms cannot be looked up in it. */
const TRIGRAM = 3;
/**
 * Entries that are scanned before the event loop continues, a few milliseconds of work: of an index, of the text index, of
 * the table. An index whose entries are numbered, for the pages of a list, takes four times as long.
 */
const SLICES = { index: 20_000, text: 1000, table: 2000 };
const NUMBERED = 5000;

type Query = v.InferOutput<typeof AssetFilters> & { sort: AssetSort };

/** The conditions of a list, by name: their values, or placeholders. Undefined: not a condition. */
type Conditions = { readonly [K in Condition]?: unknown };
type Condition =
  | "owner"
  | "match"
  | "pattern"
  | "collectionId"
  | "playbackStatus"
  | "inputStatus"
  | "externalId"
  | "playbackPolicy"
  | "createdFrom"
  | "createdTo"
  /** For anyone: of what public pages show, and no other texts. */
  | "isForAnyone";
/** `after` and `end` are positions: the page or slice begins after the one, and contains the other as its last. */
type PageCondition = Condition | "afterKey" | "afterId" | "endKey" | "endId";

/** What is read in order, entry by entry, and which entries match. */
type Source = {
  from: SQL;
  id: SQL<number>;
  /** Selects entries by an index. */
  scope: SQL | undefined;
  filter: SQL | undefined;
  slice: number;
  sort: AssetSort;
};

/** What anyone may see, as in the partial index `assets_published`, so that it is used. */
export const isPublished = sql`${assets.playbackStatus} = 'ready' and ${assets.playbackPolicy} = 'public'`;

const forSort = <T>(make: (sort: AssetSort) => T) =>
  Object.fromEntries(ASSET_SORTS.map((sort) => [sort, make(sort)])) as Record<AssetSort, T>;

const idsOf = forSort((sort) =>
  preparedFor((db, given: Given<PageCondition>) => {
    const source = sourceOf(given, sort);
    const { afterKey, afterId, endKey, endId } = given;
    const after = afterId && past(source, { key: afterKey, id: afterId });
    const within = and(after, endId && upTo(source, { key: endKey, id: endId }));
    return db
      .select({ id: source.id })
      .from(source.from)
      .where(every(source.scope, within, source.filter))
      .orderBy(orderOf(source))
      .limit(sql.placeholder("limit"))
      .prepare();
  }),
);

/** The last entry of a slice. */
const sliceEnds = forSort((sort) =>
  preparedFor((db, given: Given<PageCondition>) => {
    const source = sourceOf(given, sort);
    const { afterKey, afterId } = given;
    return db
      .select({ key: keyOf(source) as SQL<Position["key"]>, id: source.id })
      .from(source.from)
      .where(every(source.scope, afterId && past(source, { key: afterKey, id: afterId })))
      .orderBy(orderOf(source))
      .limit(1)
      .offset(sql.placeholder("offset"))
      .prepare();
  }),
);

/** In the order of `sort`, from `after`, without the first `skipped`. */
export const listAssets = (
  app: App,
  caller: Caller,
  query: Query,
  after?: Position,
  skipped?: number,
): Batches<AssetRow> => listOf(app, conditionsOf(caller, query), query.sort, after, skipped);

/** The ids of the public and ready assets of a collection with `q` in what public pages show of them, newest first. */
export function searchPublished(
  app: App,
  { id, tenantId }: { id: number; tenantId: number },
  q: string,
  page: { count: number; after: Position | undefined },
): Promise<number[]> {
  const owner = { kind: "key", keyId: null, tenantId, scopes: [] } as const;
  const filters = { collection_id: id, playback_status: "ready", playback_policy: "public" } as const;
  const { match, ...conditions } = conditionsOf(owner, { q, ...filters, sort: "newest" });
  const shown = match === undefined ? undefined : textQuery(q.trim(), tenantId, SHOWN_TEXTS);
  return idsFor(app, { ...conditions, match: shown, isForAnyone: true }, "newest", page);
}

function listOf(app: App, conditions: Conditions, sort: AssetSort, after?: Position, skipped = 0): Batches<AssetRow> {
  return async function* (count) {
    const ids = (await idsFor(app, conditions, sort, { count: count + skipped, after })).slice(skipped);
    const sized = await readPage(app, sizesOf, { ids: JSON.stringify(ids) });
    const sizes = new Map(sized.map(({ id, bytes }) => [id, bytes]));
    const inOrder = ids.map((id) => ({ id, bytes: sizes.get(id) ?? 0 }));
    yield* readBySize(inOrder, async (group) =>
      [...(await readAssets(app, group)).values()].filter((row) => row !== undefined),
    );
  };
}

/** Sizes of assets by id. */
const sizesOf = preparedFor((db, given: Given<"ids">) =>
  db
    .select({ id: assets.id, bytes: rowBytes(assets) })
    .from(assets)
    .where(sql`${assets.id} in (select value from json_each(${given.ids}))`)
    .prepare(),
);

async function idsFor(
  app: App,
  conditions: Conditions,
  sort: AssetSort,
  { count, after }: { count: number; after: Position | undefined },
): Promise<number[]> {
  const ids: number[] = [];
  // Without a filter, the first entries of the index are the page.
  const slices = hasFilter(conditions, sort) ? slicesOf(app.db, conditions, sort, after) : [{ after, end: undefined }];
  for await (const slice of slices) {
    const args = { ...conditions, ...boundsOf(slice), limit: count - ids.length };
    for (const { id } of await readPage(app, idsOf[sort], args)) ids.push(id);
    if (ids.length >= count) break;
  }
  return ids;
}

/**
 * How many assets match, and the cursors of the pages of `limit` after the first: with them a client reads any page
 * without those before it.
 */
export async function listPages(
  db: Db,
  caller: Caller,
  query: Query,
  limit: number,
): Promise<{ count: number; cursors: string[] }> {
  const { sort } = query;
  const conditions = conditionsOf(caller, query);
  const source = sourceOf(conditions, sort);
  const slice = Math.min(source.slice, NUMBERED);
  const { from, id, scope, filter } = source;
  const order = orderOf(source);
  const cursors: string[] = [];
  let count = 0;
  for await (const { after, end } of slicesOf(db, conditions, sort, undefined, slice)) {
    const within = and(after && past(source, after), end && upTo(source, end));
    // The last entry of each page, and the last one of the slice. LIMIT keeps the order of the inner query.
    const found = await db.all<Position & { number: number }>(
      sql`select * from (
        select key, id, row_number() over () as number, count(*) over () as total from (
          select ${keyOf(source)} as key, ${id} as id from ${from} where ${every(scope, within, filter)}
          order by ${order} limit ${slice}))
        where (number + ${count}) % ${limit} = 0 or number = total order by number`,
    );
    for (const each of found) if ((count + each.number) % limit === 0) cursors.push(cursorOf(each));
    count += found.at(-1)?.number ?? 0;
  }
  // Nothing follows a last page that is full.
  if (count > 0 && count % limit === 0) cursors.pop();
  return { count, cursors };
}

/** Entries after the one position and up to the other; without an end, all that follow. */
type Slice = { after: Position | undefined; end: Position | undefined };
const boundsOf = ({ after, end }: Slice) => ({
  afterKey: after?.key ?? undefined,
  afterId: after?.id,
  endKey: end?.key ?? undefined,
  endId: end?.id,
});

/** One slice of the source after the other. A filter that matches little reads many entries, but never many at once. */
async function* slicesOf(
  db: Db,
  conditions: Conditions,
  sort: AssetSort,
  first?: Position,
  length = sourceOf(conditions, sort).slice,
): AsyncGenerator<Slice> {
  const pace = pacer();
  for (let after = first; ; await pace()) {
    const args = { ...conditions, ...boundsOf({ after, end: undefined }), offset: length - 1 };
    const [end] = await sliceEnds[sort](db, args).all();
    yield { after, end };
    if (!end) return;
    after = end;
  }
}

const every = (...conditions: (SQL | undefined)[]): SQL => and(...conditions) ?? sql`true`;

const keyOf = ({ sort }: Source): SQL => ORDERS[sort].key ?? sql`null`;

function orderOf({ id, sort }: Source): SQL {
  const { key, isDescending } = ORDERS[sort];
  const direction = sql.raw(isDescending ? "desc" : "asc");
  return key === null ? sql`${id} ${direction}` : sql`${key} ${direction}, ${id} ${direction}`;
}

type Bound = { key: unknown; id: unknown };
const past = (source: Source, position: Bound) => compared(source, position, [">", "<"]);
const upTo = (source: Source, position: Bound) => compared(source, position, ["<=", ">="]);

function compared({ id, sort }: Source, position: Bound, [ascending, descending]: [string, string]): SQL {
  const { key, isDescending } = ORDERS[sort];
  const sign = sql.raw(isDescending ? descending : ascending);
  if (key === null) return sql`${id} ${sign} ${position.id}`;
  // SQLite looks up only the first condition in the index.
  const loose = sql.raw((isDescending ? descending : ascending).replace("=", "").concat("="));
  return sql`${key} ${loose} ${position.key} and (${key}, ${id}) ${sign} (${position.key}, ${position.id})`;
}

/** The conditions of a request. Throws 422 for an order that a search or several tenants do not have. */
function conditionsOf(caller: Caller, query: Query): Conditions {
  const { sort } = query;
  const own = ownerOf(caller);
  // Another tenant than the caller's has no assets for it.
  const owner =
    own === undefined || query.tenant_id === undefined || query.tenant_id === own ? (own ?? query.tenant_id) : -1;
  const words = query.q?.trim() ?? "";
  if (ORDERS[sort].key !== null) {
    if (words !== "") invalid("sort", `must be newest or oldest in a search (q), not ${sort}`);
    if (owner === undefined) invalid("sort", `must be newest or oldest without a tenant_id, not ${sort}`);
  }
  const isIndexed = [...words].length >= TRIGRAM;
  return {
    owner,
    match: isIndexed ? textQuery(words, owner) : undefined,
    pattern: isIndexed || words === "" ? undefined : `%${words.replaceAll(/[\\%_]/g, "\\$&")}%`,
    collectionId: query.collection_id,
    playbackStatus: query.playback_status,
    inputStatus: query.input_status,
    externalId: query.external_id,
    playbackPolicy: query.playback_policy,
    createdFrom: query.created_from === undefined ? undefined : Date.parse(query.created_from),
    createdTo: query.created_to === undefined ? undefined : Date.parse(query.created_to),
  };
}

const hasFilter = (conditions: Conditions, sort: AssetSort) => sourceOf(conditions, sort).filter !== undefined;

function sourceOf(conditions: Conditions, sort: AssetSort): Source {
  const { owner, match, pattern } = conditions;
  const ofTenant = compare(assets.tenantId, "=", owner);
  const id = sql<number>`${assets.id}`;
  const { indexed, others } = filtersOf(conditions);
  const filter = and(...indexed, ...others);
  if (match !== undefined) {
    // The text index returns entries in both orders of id, and lazily. CROSS prevents SQLite from starting with the table.
    const from = sql`assets_text cross join assets on assets.id = assets_text.rowid`;
    const scope = sql`assets_text match ${match}`;
    return { from, id: sql`assets_text.rowid`, scope, filter: and(ofTenant, filter), slice: SLICES.text, sort };
  }
  if (pattern !== undefined && conditions.isForAnyone !== undefined) {
    const scope = sql`${assets.collectionId} = ${conditions.collectionId} and ${isPublished}`;
    const from = sql`assets indexed by assets_published`;
    return { from, id, scope, filter: and(ofTenant, like(pattern, SHOWN_COLUMNS)), slice: SLICES.table, sort };
  }
  // One or two characters: every asset is read.
  if (pattern !== undefined) {
    const matching = and(filter, like(pattern, TEXT_COLUMNS));
    return { from: sql`assets`, id, scope: ofTenant, filter: matching, slice: SLICES.table, sort };
  }
  if (owner === undefined) return { from: sql`assets`, id, scope: undefined, filter, slice: SLICES.table, sort };
  // A single filter has an index of its own.
  if (ORDERS[sort].key === null && indexed.length === 1 && others.length === 0)
    return { from: sql`assets`, id, scope: and(ofTenant, filter), filter: undefined, slice: SLICES.table, sort };
  const from = sql`assets indexed by ${ORDERS[sort].index}`;
  return { from, id, scope: ofTenant, filter, slice: SLICES.index, sort };
}

const compare = (column: SQLiteColumn, operator: "=" | ">=" | "<=", value: unknown): SQL | undefined =>
  value === undefined ? undefined : sql`${column} ${sql.raw(operator)} ${value}`;

/** The conditions that are filters: those with an index of their own, in the order of the ids, and others. */
function filtersOf(conditions: Conditions): { indexed: SQL[]; others: SQL[] } {
  const indexed = [
    compare(assets.collectionId, "=", conditions.collectionId),
    compare(assets.playbackStatus, "=", conditions.playbackStatus),
    compare(assets.inputStatus, "=", conditions.inputStatus),
    compare(assets.externalId, "=", conditions.externalId),
  ];
  const others = [
    compare(assets.playbackPolicy, "=", conditions.playbackPolicy),
    compare(assets.createdAt, ">=", conditions.createdFrom),
    compare(assets.createdAt, "<=", conditions.createdTo),
  ];
  const given = (all: (SQL | undefined)[]) => all.filter((one) => one !== undefined);
  return { indexed: given(indexed), others: given(others) };
}

const quoted = (text: string) => `"${text.replaceAll('"', '""')}"`;

const SHOWN_TEXTS = "title description";

function textQuery(words: string, tenantId: number | undefined, columns = `${SHOWN_TEXTS} original_filename`): string {
  const phrase = `{${columns}} : ${quoted(words)}`;
  return tenantId === undefined ? phrase : `(${phrase}) AND tenant : ${quoted(`\ue000${tenantId}\ue001`)}`;
}

const like = (pattern: unknown, columns: SQLiteColumn[]): SQL | undefined =>
  or(...columns.map((column) => sql`${column} like ${pattern} escape '\\'`));
const SHOWN_COLUMNS = [assets.title, assets.description];
const TEXT_COLUMNS = [...SHOWN_COLUMNS, assets.originalFilename];

import { and, eq, gte, inArray, like, lte, or, type SQL, sql } from "drizzle-orm";
import type * as v from "valibot";
import type { Db } from "../../../storage/db/open.ts";
import { type AssetRow, assets } from "../../../storage/db/schema.ts";
import type { Caller } from "../../http/caller.ts";
import { invalid } from "../../lib/errors.ts";
import { pacer } from "../../lib/pace.ts";
import { type AssetSort, cursorOf, ORDERS, type Position } from "./order.ts";
import type { AssetFilters } from "./schema.ts";

/** The trigram length of the text index: shorter terms cannot be looked up in it. */
const TRIGRAM = 3;
/**
 * Entries that are scanned before the event loop continues, a few milliseconds of work: of an index, of the text index, of
 * the table. An index whose entries are numbered, for the pages of a list, takes four times as long.
 */
const SLICES = { index: 20_000, text: 1000, table: 2000 };
const NUMBERED = 5000;

type Filters = v.InferOutput<typeof AssetFilters>;
type Query = Filters & { sort: AssetSort };

/** What is read in order, entry by entry, and which entries match. */
type Source = {
  from: SQL;
  id: SQL;
  /** Selects entries by an index. */
  scope: SQL | undefined;
  filter: SQL | undefined;
  slice: number;
  sort: AssetSort;
};

/** In the order of `sort`, up to `limit` + 1 rows, which shows the caller whether there are more. */
export async function listAssets(
  db: Db,
  caller: Caller,
  query: Query,
  { limit, after }: { limit: number; after?: Position | undefined },
): Promise<AssetRow[]> {
  const source = sourceOf(caller, query);
  const { from, id, scope, filter } = source;
  const ids: number[] = [];
  // Without a filter, the first entries of the index are the page.
  const slices = filter === undefined ? [after && past(source, after)] : slicesOf(db, source, after);
  for await (const within of slices) {
    const found = await db.all<{ id: number }>(
      sql`select ${id} as id from ${from} where ${every(scope, within, filter)} order by ${orderOf(source)}
        limit ${limit + 1 - ids.length}`,
    );
    for (const row of found) ids.push(row.id);
    if (ids.length > limit) break;
  }
  if (ids.length === 0) return [];
  const rows = new Map(
    (await db.select().from(assets).where(inArray(assets.id, ids)).all()).map((row) => [row.id, row]),
  );
  return ids.map((each) => rows.get(each)).filter((row) => row !== undefined);
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
  const source = sourceOf(caller, query);
  source.slice = Math.min(source.slice, NUMBERED);
  const { from, id, scope, filter, slice, sort } = source;
  const order = orderOf(source);
  const key = ORDERS[sort].key;
  const cursors: string[] = [];
  let count = 0;
  for await (const within of slicesOf(db, source)) {
    // The last entry of each page, and the last one of the slice. LIMIT keeps the order of the inner query.
    const found = await db.all<Position & { number: number }>(
      sql`select * from (
        select key, id, row_number() over () as number, count(*) over () as total from (
          select ${key ?? sql`null`} as key, ${id} as id from ${from} where ${every(scope, within, filter)}
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

/**
 * Conditions that select one slice of the source after the other. A filter that matches little reads many entries, but
 * never many at once.
 */
async function* slicesOf(db: Db, source: Source, after?: Position): AsyncGenerator<SQL | undefined> {
  const { from, id, scope, slice } = source;
  const key = ORDERS[source.sort].key ?? sql`null`;
  const pace = pacer();
  for (let below = after; ; await pace()) {
    const rest = below && past(source, below);
    const [end] = await db.all<Position>(
      sql`select ${key} as key, ${id} as id from ${from} where ${every(scope, rest)}
        order by ${orderOf(source)} limit 1 offset ${slice - 1}`,
    );
    yield and(rest, end && upTo(source, end));
    if (!end) return;
    below = end;
  }
}

const every = (...conditions: (SQL | undefined)[]): SQL => and(...conditions) ?? sql`true`;

function orderOf({ id, sort }: Source): SQL {
  const { key, isDescending } = ORDERS[sort];
  const direction = sql.raw(isDescending ? "desc" : "asc");
  return key === null ? sql`${id} ${direction}` : sql`${key} ${direction}, ${id} ${direction}`;
}

const past = (source: Source, position: Position) => compared(source, position, [">", "<"]);
const upTo = (source: Source, position: Position) => compared(source, position, ["<=", ">="]);

function compared({ id, sort }: Source, position: Position, [ascending, descending]: [string, string]): SQL {
  const { key, isDescending } = ORDERS[sort];
  const sign = sql.raw(isDescending ? descending : ascending);
  if (key === null) return sql`${id} ${sign} ${position.id}`;
  // SQLite looks up only the first condition in the index.
  const loose = sql.raw((isDescending ? descending : ascending).replace("=", "").concat("="));
  return sql`${key} ${loose} ${position.key} and (${key}, ${id}) ${sign} (${position.key}, ${position.id})`;
}

function sourceOf(caller: Caller, query: Query): Source {
  const { sort } = query;
  const owner = ownerOf(caller, query.tenant_id);
  const ofTenant = owner === undefined ? undefined : eq(assets.tenantId, owner);
  const id = sql`${assets.id}`;
  const words = query.q?.trim() ?? "";
  if (ORDERS[sort].key !== null) {
    if (words !== "") invalid("sort", `must be newest or oldest in a search (q), not ${sort}`);
    if (owner === undefined) invalid("sort", `must be newest or oldest without a tenant_id, not ${sort}`);
  }
  const { indexed, others } = filtersOf(query);
  const filter = and(...indexed, ...others);
  if ([...words].length >= TRIGRAM) {
    // The text index returns entries in both orders of id, and lazily. CROSS prevents SQLite from starting with the table.
    const from = sql`assets_text cross join assets on assets.id = assets_text.rowid`;
    const scope = sql`assets_text match ${textQuery(words, owner)}`;
    return { from, id: sql`assets_text.rowid`, scope, filter: and(ofTenant, filter), slice: SLICES.text, sort };
  }
  // One or two characters: every asset is read.
  if (words !== "")
    return { from: sql`assets`, id, scope: ofTenant, filter: and(filter, contains(words)), slice: SLICES.table, sort };
  if (owner === undefined) return { from: sql`assets`, id, scope: undefined, filter, slice: SLICES.table, sort };
  // A single filter has an index of its own.
  if (ORDERS[sort].key === null && indexed.length === 1 && others.length === 0)
    return { from: sql`assets`, id, scope: and(ofTenant, filter), filter: undefined, slice: SLICES.table, sort };
  const from = sql`assets indexed by ${ORDERS[sort].index}`;
  return { from, id, scope: ofTenant, filter, slice: SLICES.index, sort };
}

/** The tenant whose assets are read; -1 for none, undefined for all. */
function ownerOf(caller: Caller, named: number | undefined): number | undefined {
  if (caller.kind === "admin") return named;
  return caller.kind === "key" && (named === undefined || named === caller.tenantId) ? caller.tenantId : -1;
}

/** The conditions of a query: those with an index of their own, in the order of the ids, and others. */
function filtersOf(query: Query): { indexed: SQL[]; others: SQL[] } {
  const indexed = [
    query.collection_id === undefined ? undefined : eq(assets.collectionId, query.collection_id),
    query.playback_status && eq(assets.playbackStatus, query.playback_status),
    query.input_status && eq(assets.inputStatus, query.input_status),
    query.external_id === undefined ? undefined : eq(assets.externalId, query.external_id),
  ];
  const others = [
    query.playback_policy && eq(assets.playbackPolicy, query.playback_policy),
    query.created_from === undefined ? undefined : gte(assets.createdAt, Date.parse(query.created_from)),
    query.created_to === undefined ? undefined : lte(assets.createdAt, Date.parse(query.created_to)),
  ];
  const given = (all: (SQL | undefined)[]) => all.filter((one) => one !== undefined);
  return { indexed: given(indexed), others: given(others) };
}

const quoted = (text: string) => `"${text.replaceAll('"', '""')}"`;

function textQuery(words: string, tenantId: number | undefined): string {
  const phrase = `{title description original_filename} : ${quoted(words)}`;
  return tenantId === undefined ? phrase : `(${phrase}) AND tenant : ${quoted(`\ue000${tenantId}\ue001`)}`;
}

function contains(words: string): SQL | undefined {
  const pattern = `%${words.replaceAll(/[\\%_]/g, "\\$&")}%`;
  return or(
    ...[assets.title, assets.description, assets.originalFilename].map(
      (column) => sql`${like(column, pattern)} escape '\\'`,
    ),
  );
}

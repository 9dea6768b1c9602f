import { setImmediate as turn } from "node:timers/promises";
import { and, desc, eq, getTableColumns, like, lt, or, type SQL, sql } from "drizzle-orm";
import type * as v from "valibot";
import type { Db } from "../../../storage/db/open.ts";
import { type AssetRow, assets } from "../../../storage/db/schema.ts";
import { type Caller, ownedBy } from "../../http/caller.ts";
import type { AssetQuery } from "./schema.ts";

/** What the index of texts is made of: fewer characters find nothing in it. */
const TRIGRAM = 3;
/** Rows that are looked through before the event loop turns. */
const SLICE = 2000;

type Query = v.InferOutput<typeof AssetQuery>;
type Page = { limit: number; before?: number | undefined };

/** Newest first, up to `limit` + 1 rows so that the caller sees whether there are more. */
export function listAssets(db: Db, caller: Caller, query: Query, page: Page): Promise<AssetRow[]> {
  const words = query.q?.trim() ?? "";
  const filter = and(
    ownedBy(caller, assets.tenantId),
    query.tenant_id === undefined ? undefined : eq(assets.tenantId, query.tenant_id),
    query.collection_id === undefined ? undefined : eq(assets.collectionId, query.collection_id),
    query.playback_status && eq(assets.playbackStatus, query.playback_status),
    query.input_status && eq(assets.inputStatus, query.input_status),
    query.external_id === undefined ? undefined : eq(assets.externalId, query.external_id),
  );
  if (words === "") return newest(db, filter, page);
  if ([...words].length < TRIGRAM) return lookThrough(db, filter, { ...page, words });
  return search(db, filter, { ...page, words, tenantId: caller.kind === "key" ? caller.tenantId : query.tenant_id });
}

const newest = (db: Db, filter: SQL | undefined, { limit, before }: Page): Promise<AssetRow[]> =>
  db
    .select()
    .from(assets)
    .where(and(filter, before === undefined ? undefined : lt(assets.id, before)))
    .orderBy(desc(assets.id))
    .limit(limit + 1)
    .all();

const quoted = (text: string) => `"${text.replaceAll('"', '""')}"`;

/** By the index of texts, which gives its finds newest first as they are asked for, so that a common word costs no more than a rare one. */
function search(
  db: Db,
  filter: SQL | undefined,
  { words, tenantId, limit, before }: Page & { words: string; tenantId: number | undefined },
): Promise<AssetRow[]> {
  const phrase = `{title description original_filename} : ${quoted(words)}`;
  const found = tenantId === undefined ? phrase : `(${phrase}) AND tenant : ${quoted(`\ue000${tenantId}\ue001`)}`;
  return (
    db
      .select(getTableColumns(assets))
      .from(sql`assets_text`)
      // CROSS keeps SQLite from beginning with the assets.
      .crossJoin(assets)
      .where(
        and(
          sql`assets_text match ${found}`,
          sql`${assets.id} = assets_text.rowid`,
          filter,
          before === undefined ? undefined : sql`assets_text.rowid < ${before}`,
        ),
      )
      .orderBy(sql`assets_text.rowid desc`)
      .limit(limit + 1)
      .all() as Promise<AssetRow[]>
  );
}

/** One or two characters: every asset is looked at, a slice at a time. */
async function lookThrough(
  db: Db,
  filter: SQL | undefined,
  { words, limit, before }: Page & { words: string },
): Promise<AssetRow[]> {
  const pattern = `%${words.replaceAll(/[\\%_]/g, "\\$&")}%`;
  const contains = (column: typeof assets.title | typeof assets.description | typeof assets.originalFilename) =>
    sql`${like(column, pattern)} escape '\\'`;
  const anywhere = or(contains(assets.title), contains(assets.description), contains(assets.originalFilename));
  const found: AssetRow[] = [];
  for (let below = before; ; ) {
    const last = await db
      .select({ id: assets.id })
      .from(assets)
      .where(and(filter, below === undefined ? undefined : lt(assets.id, below)))
      .orderBy(desc(assets.id))
      .limit(1)
      .offset(SLICE - 1)
      .get();
    const slice = and(filter, anywhere, last && sql`${assets.id} >= ${last.id}`);
    found.push(...(await newest(db, slice, { limit: limit - found.length, before: below })));
    if (found.length > limit || !last) return found;
    below = last.id;
    await turn();
  }
}

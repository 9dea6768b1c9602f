import { type SQL, sql } from "drizzle-orm";
import * as v from "valibot";
import { decodeCursor, decodeKey, encodeCursor, encodeKey } from "#platform/http/paging.ts";
import { type AssetRow, assets } from "#storage/db/schema.ts";

export const ASSET_SORTS = ["newest", "oldest", "title", "duration", "size"] as const;
export type AssetSort = (typeof ASSET_SORTS)[number];

/** Where a list continues. `key` is the column of the order; null where the id is the whole order. */
export type Position = { key: string | number | null; id: number };

type Order = {
  /** Null: by id alone. */
  key: SQL | null;
  /** Its index, which begins with the tenant. */
  index: SQL;
  isDescending: boolean;
  cursor: v.GenericSchema<unknown, [string | number, number]> | null;
  keyOf(row: AssetRow): string | number | null;
};

const byNumber = v.strictTuple([v.number(), v.number()]);
const byText = v.strictTuple([v.string(), v.number()]);
const byId = { key: null, index: sql.raw("assets_by_tenant"), cursor: null, keyOf: () => null };

export const ORDERS: Record<AssetSort, Order> = {
  newest: { ...byId, isDescending: true },
  oldest: { ...byId, isDescending: false },
  title: {
    key: sql`${assets.title} collate nocase`,
    index: sql.raw("assets_by_title"),
    isDescending: false,
    cursor: byText,
    keyOf: ({ title }) => title,
  },
  duration: {
    key: sql`${assets.durationSeconds}`,
    index: sql.raw("assets_by_duration"),
    isDescending: true,
    cursor: byNumber,
    keyOf: ({ durationSeconds }) => durationSeconds,
  },
  size: {
    key: sql`${assets.storageBytes}`,
    index: sql.raw("assets_by_size"),
    isDescending: true,
    cursor: byNumber,
    keyOf: ({ storageBytes }) => storageBytes,
  },
};

/** The cursor of what follows `position`. */
export const cursorOf = ({ key, id }: Position): string => (key === null ? encodeCursor(id) : encodeKey([key, id]));

/** Throws 422 for the cursor of another order. */
export function positionOf(sort: AssetSort, cursor: string | undefined): Position | undefined {
  const schema = ORDERS[sort].cursor;
  if (schema === null) {
    const id = decodeCursor(cursor);
    return id === undefined ? undefined : { key: null, id };
  }
  const found = decodeKey(cursor, schema);
  return found && { key: found[0], id: found[1] };
}

export const positionIn = (sort: AssetSort, row: AssetRow): Position => ({ key: ORDERS[sort].keyOf(row), id: row.id });

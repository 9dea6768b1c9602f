import * as v from "valibot";
import { invalid } from "../lib/errors.ts";
import { Reply } from "./route.ts";

export const UNPAGED = 1000;

/** Cursor of a list: the id of the last record returned. Opaque, so that its content can change. */
export const encodeCursor = (id: number) => Buffer.from(`id:${id}`).toString("base64url");

export function decodeCursor(cursor: string | undefined): number | undefined {
  if (cursor === undefined) return undefined;
  const id = /^id:(\d{1,15})$/.exec(Buffer.from(cursor, "base64url").toString())?.[1];
  return id ? Number(id) : invalid("cursor", "is not a cursor of this list");
}

/** Cursor of a list that is not ordered by id: all columns of the order. */
export const encodeKey = (key: readonly (string | number)[]) => Buffer.from(JSON.stringify(key)).toString("base64url");

export function decodeKey<T>(cursor: string | undefined, schema: v.GenericSchema<unknown, T>): T | undefined {
  if (cursor === undefined) return undefined;
  try {
    return v.parse(schema, JSON.parse(Buffer.from(cursor, "base64url").toString()));
  } catch {
    return invalid("cursor", "is not a cursor of this list");
  }
}

/** A page as an array, with the Link header of the next page (RFC 8288) when `rows` has one more than `limit`. */
export function page<R extends { id: number }>(
  rows: R[],
  limit: number,
  address: URL,
  baseUrl: string,
  toWire: (row: R) => unknown,
  cursorOf = (row: R) => encodeCursor(row.id),
): Reply {
  const page = rows.slice(0, limit);
  const last = page.at(-1);
  if (rows.length <= limit || !last) return new Reply(200, page.map(toWire));
  const query = new URLSearchParams(address.searchParams);
  query.set("cursor", cursorOf(last));
  return new Reply(200, page.map(toWire), { link: `<${baseUrl}${address.pathname}?${query}>; rel="next"` });
}

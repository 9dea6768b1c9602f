import * as v from "valibot";
import { invalid } from "../lib/errors.ts";
import { Reply } from "./route.ts";

export const UNPAGED = 1000;

/** Where a list goes on: the id of the last record given. Opaque, so that it may become something else. */
const encodeCursor = (id: number) => Buffer.from(`id:${id}`).toString("base64url");

export function decodeCursor(cursor: string | undefined): number | undefined {
  if (cursor === undefined) return undefined;
  const id = /^id:(\d{1,15})$/.exec(Buffer.from(cursor, "base64url").toString())?.[1];
  return id ? Number(id) : invalid("cursor", "is none that this list gave");
}

/** Of a list whose order is not by id: all that the order is made of. */
export const encodeKey = (key: readonly (string | number)[]) => Buffer.from(JSON.stringify(key)).toString("base64url");

export function decodeKey<T>(cursor: string | undefined, schema: v.GenericSchema<unknown, T>): T | undefined {
  if (cursor === undefined) return undefined;
  try {
    return v.parse(schema, JSON.parse(Buffer.from(cursor, "base64url").toString()));
  } catch {
    return invalid("cursor", "is none that this list gave");
  }
}

/** A page as an array, with RFC 8288's Link to the next when `rows` has one more than `limit`. */
export function page<R extends { id: number }>(
  rows: R[],
  limit: number,
  address: URL,
  baseUrl: string,
  toWire: (row: R) => unknown,
  cursorOf = (row: R) => encodeCursor(row.id),
): Reply {
  const shown = rows.slice(0, limit);
  const last = shown.at(-1);
  if (rows.length <= limit || !last) return new Reply(200, shown.map(toWire));
  const query = new URLSearchParams(address.searchParams);
  query.set("cursor", cursorOf(last));
  return new Reply(200, shown.map(toWire), { link: `<${baseUrl}${address.pathname}?${query}>; rel="next"` });
}

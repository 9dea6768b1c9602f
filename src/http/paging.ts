import { HttpError } from "../lib/errors.ts";
import { Reply } from "./route.ts";

export const UNPAGED = 1000;

/** Where a list goes on: the id of the last record given. Opaque, so that it may become something else. */
export const encodeCursor = (id: number) => Buffer.from(`id:${id}`).toString("base64url");

export function decodeCursor(cursor: string | undefined): number | undefined {
  if (cursor === undefined) return undefined;
  const id = /^id:(\d{1,15})$/.exec(Buffer.from(cursor, "base64url").toString())?.[1];
  if (!id)
    throw new HttpError(422, "validation_failed", "cursor: is none that this list gave", {
      details: { cursor: ["is none that this list gave"] },
    });
  return Number(id);
}

/** A page as an array, with RFC 8288's Link to the next when `rows` has one more than `limit`. */
export function page<R extends { id: number }>(
  rows: R[],
  limit: number,
  address: URL,
  baseUrl: string,
  toWire: (row: R) => unknown,
): Reply {
  const shown = rows.slice(0, limit);
  const last = shown.at(-1);
  if (rows.length <= limit || !last) return new Reply(200, shown.map(toWire));
  const query = new URLSearchParams(address.searchParams);
  query.set("cursor", encodeCursor(last.id));
  return new Reply(200, shown.map(toWire), { link: `<${baseUrl}${address.pathname}?${query}>; rel="next"` });
}

import { HttpError } from "../lib/errors.ts";
import { Reply } from "./route.ts";

export const UNPAGED = 1000;

/** Where a list goes on: what the last record given is ordered by, its id last. Opaque, so that it may become something else. */
const encodeCursor = (place: readonly number[]) => Buffer.from(`id:${place.join(":")}`).toString("base64url");

/** The `parts` numbers of a cursor; 422 for what is none of this list's. */
export function decodePlace(cursor: string | undefined, parts: number): number[] | undefined {
  if (cursor === undefined) return undefined;
  const [, text = ""] = /^id:(-?\d{1,15}(?::-?\d{1,15})*)$/.exec(Buffer.from(cursor, "base64url").toString()) ?? [];
  const place = text.split(":");
  if (text === "" || place.length !== parts)
    throw new HttpError(422, "validation_failed", "cursor: is none that this list gave", {
      details: { cursor: ["is none that this list gave"] },
    });
  return place.map(Number);
}
/** Of a list that is ordered by id alone. */
export const decodeCursor = (cursor: string | undefined) => decodePlace(cursor, 1)?.[0];

/** A page as an array, with RFC 8288's Link to the next when `rows` has one more than `limit`. */
export function page<R extends { id: number }>(
  rows: R[],
  limit: number,
  address: URL,
  baseUrl: string,
  toWire: (row: R) => unknown,
  placeOf: (row: R) => readonly number[] = (row) => [row.id],
): Reply {
  const shown = rows.slice(0, limit);
  const last = shown.at(-1);
  if (rows.length <= limit || !last) return new Reply(200, shown.map(toWire));
  const query = new URLSearchParams(address.searchParams);
  query.set("cursor", encodeCursor(placeOf(last)));
  return new Reply(200, shown.map(toWire), { link: `<${baseUrl}${address.pathname}?${query}>; rel="next"` });
}

import { FastResponse } from "srvx";
import * as v from "valibot";
import { clientClosed, invalid, pacer } from "#lib/base";
import { admit } from "../limits/expensive.ts";
import { queueOwner } from "./queue-owner.ts";
import { onResponseSent } from "./response-sent.ts";
import { type Context, JsonText, Reply } from "./route.ts";

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

/** Largest body of a page, unless its first record is larger. */
export const MAX_PAGE_BYTES = 4 * 2 ** 20;
/** A larger page waits in the fair queue `lists`. */
const LIGHT_BYTES = 128 * 1024;
/** A usual page and the row after it. */
const ROWS_AT_ONCE = 101;

/** Reads at most so many rows, in batches of which each takes at most a few milliseconds. */
export type Batches<Row> = (rows: number) => AsyncIterable<Row[]>;

/**
 * Batches of a list that continues after a key. `read` returns up to `limit` + 1 rows. `atOnce` is lower where rows may
 * have more than 10 KB.
 */
export const inBatches = <Row, Key>(
  { from, keyOf, atOnce = ROWS_AT_ONCE }: { from: Key | undefined; keyOf: (row: Row) => Key; atOnce?: number },
  read: (after: Key | undefined, limit: number) => Promise<Row[]>,
): Batches<Row> =>
  async function* (rows) {
    let after = from;
    for (let left = rows; left > 0; ) {
      const count = Math.min(atOnce, left);
      const batch = await read(after, count - 1);
      yield batch;
      const last = batch.at(-1);
      if (last === undefined || batch.length < count) return;
      left -= batch.length;
      after = keyOf(last);
    }
  };

/** Rows that a filter without an index reads at once: about two milliseconds of work. */
export const WINDOW_ROWS = 500;

type Windows<Row, Key> = {
  from: Key | undefined;
  keyOf: (row: Row) => Key;
  /** The key of the last row of a window of `WINDOW_ROWS` behind `after`, by an index alone; undefined when there are fewer. */
  endOf: (after: Key | undefined) => Promise<Key | undefined>;
  /** Matches behind `after`, up to and with `until`, at most `limit`. Undefined: from the beginning, to the end. */
  read: (range: { after: Key | undefined; until: Key | undefined }, limit: number) => Promise<Row[]>;
};

/**
 * Batches of a list with a filter that has no index: rows are searched window by window, however few match. To be listed with
 * `isSearch`.
 */
export const inWindows = <Row, Key>({ from, keyOf, endOf, read }: Windows<Row, Key>): Batches<Row> =>
  async function* (rows) {
    let after = from;
    let left = rows;
    for (let isMore = true; isMore; ) {
      const until = await endOf(after);
      for (let isFull = true; isFull; ) {
        const count = Math.min(ROWS_AT_ONCE, left);
        const batch = await read({ after, until }, count);
        yield batch;
        left -= batch.length;
        if (left === 0) return;
        isFull = batch.length === count;
        if (isFull) after = keyOf(batch.at(-1) as Row);
      }
      isMore = until !== undefined;
      after = until;
    }
  };

/** The same for a list in the order of ids. */
export const byId = <Row extends { id: number }>(
  cursor: string | undefined,
  read: (after: number | undefined, limit: number) => Promise<Row[]>,
  atOnce?: number,
): Batches<Row> =>
  inBatches({ from: decodeCursor(cursor), keyOf: ({ id }: Row) => id, ...(atOnce && { atOnce }) }, read);

type PageContext = Pick<Context, "app" | "caller" | "address" | "url" | "method" | "incoming" | "signal"> & {
  query: { limit?: number | undefined };
};
type Listing<Row> = {
  batches: Batches<Row>;
  toWire(row: Row): unknown;
  /** By default, of the row's id. */
  cursorOf?: (row: Row) => string;
  /** Many rows may be read for few results: it waits in the queue from the beginning. */
  isSearch?: boolean;
};

/**
 * A page as an array, which ends after `limit` records or 4 MiB, whichever comes first, with the Link header of the next
 * page (RFC 8288) when there are more. A large page is one of a few at once, fairly among tenants: throws 429, 503.
 */
export async function page<Row>(context: PageContext, listing: Listing<Row>): Promise<Reply | Response> {
  const light = listing.isSearch ? null : await serialized(context, listing, LIGHT_BYTES);
  if (light) return new Reply(200, new JsonText(`[${light.parts.join(",")}]`), light.headers);
  const permit = await admit(context.app, "lists", queueOwner(context), context.signal);
  let isSending = false;
  try {
    const { parts, headers } = (await serialized(context, listing, Number.POSITIVE_INFINITY)) as Serialized;
    const body = await encoded(parts);
    const type = { "content-type": "application/json; charset=utf-8", "cache-control": "no-store" };
    const response = new FastResponse(context.method === "HEAD" ? null : body, {
      headers: { ...type, "content-length": String(body.length), ...headers },
    });
    isSending = context.method !== "HEAD" && context.incoming !== undefined;
    if (isSending) onResponseSent(response, () => permit.release());
    return response;
  } finally {
    if (!isSending) permit.release();
  }
}

/** An array of JSON values, as text in UTF-8. */
async function encoded(parts: string[]): Promise<Buffer<ArrayBuffer>> {
  const pace = pacer();
  const buffers: Buffer[] = [];
  for (const [index, part] of parts.entries()) {
    buffers.push(Buffer.from(index === 0 ? "[" : ","), Buffer.from(part));
    await pace();
  }
  buffers.push(Buffer.from(parts.length === 0 ? "[]" : "]"));
  return Buffer.concat(buffers);
}

type Serialized = { parts: string[]; headers: Record<string, string> };

/** Null when the body has more than `maxBytes`: nothing of it is kept while it waits. */
async function serialized<Row>(
  { app, query, url, signal }: PageContext,
  { batches, toWire, cursorOf = (row) => encodeCursor((row as { id: number }).id) }: Listing<Row>,
  maxBytes: number,
): Promise<Serialized | null> {
  const limit = query.limit ?? UNPAGED;
  const parts: string[] = [];
  let bytes = 2;
  let last: Row | undefined;
  const pace = pacer();
  const next = () => {
    const search = new URLSearchParams(url.searchParams);
    search.set("cursor", cursorOf(last as Row));
    return { parts, headers: { link: `<${app.baseUrl()}${url.pathname}?${search}>; rel="next"` } };
  };
  for await (const rows of batches(limit + 1)) {
    for (const row of rows) {
      if (parts.length === limit) return next();
      const part = JSON.stringify(await toWire(row));
      const partBytes = Buffer.byteLength(part) + 1;
      if (parts.length > 0 && bytes + partBytes > MAX_PAGE_BYTES) return next();
      parts.push(part);
      bytes += partBytes;
      last = row;
      if (bytes > maxBytes) return null;
      await pace();
    }
    if (signal.aborted) throw clientClosed();
    // A batch may be empty.
    await pace();
  }
  return { parts, headers: {} };
}

import { type Batches, page } from "#platform/http/paging.ts";
import { JsonText, Reply } from "#platform/http/route.ts";
import type { MuxCall } from "./endpoint.ts";
import { notSupported } from "./errors.ts";

/** Records that are read to reach a page by its number. Cursors have no limit. */
const MAX_SKIPPED = 10_000;

type Paged = { limit: number; page: number; cursor?: string | undefined };
type Listing<Row> = {
  batches: Batches<Row>;
  /** The list without its first rows, where these need not be read. */
  batchesAfter?: (skipped: number) => Batches<Row>;
  toWire(row: Row): unknown;
  cursorOf?: (row: Row) => string;
};

/** A list in Mux's form: `{data, next_cursor}`. `page` counts from 1, and after a cursor. */
export async function muxPage<Row>(
  { app, caller, context }: MuxCall,
  { limit, page: number }: Paged,
  { batches, batchesAfter = (count) => skipping(batches, count), ...listing }: Listing<Row>,
): Promise<Reply> {
  const skipped = (number - 1) * limit;
  if (skipped > MAX_SKIPPED) notSupported(`page (beyond ${MAX_SKIPPED} records; use cursor)`);
  const { address, url, signal } = context;
  // Without a connection, the permit of a large page is returned as soon as it is complete.
  const own = { app, caller, address, url, signal, method: "GET", incoming: undefined, query: { limit } };
  const answer = await page(own, { ...listing, batches: batchesAfter(skipped) });
  const [text, headers] =
    answer instanceof Reply
      ? [(answer.body as JsonText).text, new Headers(answer.headers)]
      : [await answer.text(), answer.headers];
  const next = cursorIn(headers.get("link"));
  return new Reply(
    200,
    new JsonText(`{"data":${text}${next === null ? "" : `,"next_cursor":${JSON.stringify(next)}`}}`),
  );
}

/** Without the first rows. */
const skipping = <Row>(batches: Batches<Row>, count: number): Batches<Row> =>
  async function* (rows) {
    let left = count;
    for await (const batch of batches(rows + count)) {
      yield batch.slice(left);
      left = Math.max(0, left - batch.length);
    }
  };

/** The cursor of the next page, from the Link header (RFC 8288). */
function cursorIn(link: string | null): string | null {
  const url = /^<([^>]+)>; rel="next"$/.exec(link ?? "")?.[1];
  return url === undefined ? null : new URL(url).searchParams.get("cursor");
}

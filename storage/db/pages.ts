/**
 * Reads rows page by page until a page is not full. `read` returns at most `limit` rows after the key of the last row
 * (`keyOf`), starting after `from`.
 */
export async function* pagesOf<Row, Key>(
  { from, limit, keyOf }: { from: Key; limit: number; keyOf: (row: Row) => Key },
  read: (after: Key) => Promise<Row[]>,
): AsyncGenerator<Row[]> {
  for (let after = from; ; ) {
    const rows = await read(after);
    if (rows.length > 0) yield rows;
    const last = rows.at(-1);
    if (last === undefined || rows.length < limit) return;
    after = keyOf(last);
  }
}

/** The rows of the same, one by one, from a synchronous source. */
export function* rowsOf<Row, Key>(
  { from, limit, keyOf }: { from: Key; limit: number; keyOf: (row: Row) => Key },
  read: (after: Key) => Row[],
): Generator<Row> {
  for (let after = from; ; ) {
    const rows = read(after);
    yield* rows;
    const last = rows.at(-1);
    if (last === undefined || rows.length < limit) return;
    after = keyOf(last);
  }
}

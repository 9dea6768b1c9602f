import { expect, test } from "vitest";
import { localStore } from "#storage/objects/local.ts";
import { listSnapshots } from "#storage/replica/catalog.ts";
import { checkChain } from "#storage/replica/chain.ts";
import { newGeneration, segmentKey } from "#storage/replica/names.ts";
import { putManifest, putSnapshotData } from "#storage/replica/snapshot.ts";
import { emptyFolder } from "#test/support/folder.ts";

const SUM = "0".repeat(32);
/** The time of segment `number`: one a second. */
const timeOf = (number: number) => 1_700_000_000_000 + number * 1000;

async function replica(snapshots: readonly { from: number; until: number }[], segments: readonly number[]) {
  const store = localStore({ root: emptyFolder(), signing: { secret: "s", baseUrl: "http://localhost" } });
  const generation = newGeneration(timeOf(0));
  const signal = new AbortController().signal;
  const pieces = async function* () {
    yield Buffer.from("database");
  };
  for (const { from, until } of snapshots) {
    const data = await putSnapshotData(store, { generation, pieces: pieces(), signal });
    await putManifest(store, { generation, at: timeOf(until), vodbox: "1", from, until, previous: "", ...data });
  }
  for (const number of segments) {
    const at = timeOf(number);
    await store.put(segmentKey({ generation, number, first: at, last: at, sum: SUM }), Buffer.from("s"));
  }
  return store;
}
const range = (first: number, end: number) => Array.from({ length: end - first + 1 }, (_, index) => first + index);

test.each([
  ["whole", [[0, 0]], range(1, 9), [0, 9], 0],
  ["no segments", [[0, 0]], [], [0, 0], 0],
  ["a missing segment", [[0, 0]], [1, 2, 3, 5, 6], [0, 3], 1],
  ["the first one missing", [[0, 0]], range(2, 6), [0, 0], 1],
  ["the last ones missing", [[0, 0]], range(1, 4), [0, 4], 0],
  [
    "a missing one before a later snapshot",
    [
      [0, 0],
      [6, 6],
    ],
    [1, 2, 4, 5, 6, 7, 8],
    [6, 8],
    1,
  ],
  [
    "a missing one behind a later snapshot",
    [
      [0, 0],
      [4, 4],
    ],
    [1, 2, 3, 4, 5, 7],
    [0, 5],
    1,
  ],
  [
    "a missing one that a snapshot needs",
    [
      [0, 0],
      [3, 6],
    ],
    [1, 2, 3, 4, 6, 7],
    [0, 4],
    2,
  ],
  ["the first snapshots were pruned", [[4, 4]], range(5, 8), [4, 8], 0],
] as const)("%s", async (_, snapshots, segments, [from, to], faults) => {
  const store = await replica(
    snapshots.map(([first, until]) => ({ from: first, until })),
    segments,
  );
  const chain = await checkChain(store, await listSnapshots(store));
  expect(chain).toMatchObject({ from: timeOf(from), to: timeOf(to) });
  expect(chain.faults).toHaveLength(faults);
});

test("a snapshot without its data is not a beginning", async () => {
  const store = await replica(
    [
      { from: 0, until: 0 },
      { from: 4, until: 4 },
    ],
    range(1, 6),
  );
  const data = (await store.list("snapshots/")).objects.filter(({ key }) => key.endsWith(".zst"));
  for (const { key } of data) await store.delete(key);
  const chain = await checkChain(store, await listSnapshots(store));
  expect(chain).toMatchObject({ from: null, to: null });
  expect(chain.faults).toHaveLength(2);
  expect(chain.faults[0]).toContain("its data is missing");
});

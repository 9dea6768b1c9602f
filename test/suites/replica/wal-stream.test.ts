import { expect, test } from "vitest";
import type { WalState } from "#storage/replica/wal.ts";
import { type Line, WalStream } from "#storage/replica/wal-stream.ts";

const pageSize = 4096;
const first: WalState = { salts: "00000001aaaaaaaa", frames: 5, backfilled: 5, pageSize };
const second: WalState = { salts: "00000002bbbbbbbb", frames: 3, backfilled: 0, pageSize };

test("a generation that begins while the log is read continues in the log that was restarted before", async () => {
  let state = async () => first;
  let line: Line | null = null;
  const log = {
    state: () => state(),
    databaseVersion: async () => "1",
    read: () => Promise.reject(new Error("Nothing is read here.")),
  };
  const stream = await WalStream.open(log, { now: () => 0, lineOf: () => line });
  expect(await stream.seal()).toBe(true);

  // A write restarts the log, and the observation that finds it has begun.
  const asked = Promise.withResolvers<void>();
  const found = Promise.withResolvers<WalState>();
  state = () => {
    asked.resolve();
    return found.promise;
  };
  const observed = stream.observe();
  await asked.promise;
  // The generation begins with what was observed last.
  const { salts, frames } = stream.state;
  line = { generation: "g", number: 0, previous: "", lastAt: 0, position: { salts, frame: frames, sum: "" } };
  stream.continueAt(line.position);
  found.resolve(second);
  await observed;
  expect(line.position).toEqual({ salts: second.salts, frame: 0, sum: "" });
  expect(stream.hasMore).toBe(true);
});

import { statSync } from "node:fs";
import { join } from "node:path";
import { sql } from "drizzle-orm";
import Sqlite from "libsql";
import { expect, test } from "vitest";
import { Connection } from "#storage/db/connection.ts";
import { openDatabase } from "#storage/db/open.ts";
import { listAll } from "#storage/objects/list-all.ts";
import { localStore } from "#storage/objects/local.ts";
import { type ObjectStore, StorageUnavailable } from "#storage/objects/store.ts";
import { urlSigning } from "#storage/objects/url-signing.ts";
import { listGenerations, listSegments, listSnapshots } from "#storage/replica/catalog.ts";
import { Replicator } from "#storage/replica/replicator.ts";
import { restoreReplica } from "#storage/replica/restore.ts";
import { until } from "#test/support/descendants.ts";
import { atEnd, emptyFolder } from "#test/support/folder.ts";

const DAY_MS = 86_400_000;
const silent = { info() {}, warn() {} };

/** A real database with a replicator, whose clock and store the test controls. */
async function replicatedDatabase({ maxLogBytes = 2 ** 29, retentionDays = 7 } = {}) {
  const folder = emptyFolder();
  const file = join(folder, "test.db");
  const real = localStore({ root: join(folder, "replica"), signing: urlSigning("", () => "") });
  let isAway = false;
  const store = new Proxy(real as ObjectStore, {
    get: (target, name) =>
      name === "put" && isAway
        ? () => Promise.reject(new StorageUnavailable("The test has switched it off."))
        : Reflect.get(target, name),
  });
  let offsetMs = 0;
  const now = () => Date.now() + offsetMs;
  const database = await openDatabase({ url: `file:${file}`, checkpoints: false });
  const { write } = database;
  await write(async (tx) => {
    await tx.run(sql`CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT)`);
  });
  const replicator = new Replicator({
    file,
    folder: join(folder, "state"),
    openStore: async () => store,
    secrets: () => ({}),
    now,
    log: silent,
    retentionMs: retentionDays * DAY_MS,
    vodbox: "test",
    maxLogBytes,
    connection: new Connection(file, "write", { checkpoints: false }),
    exclusively: (work) => database.exclusively(work),
  });
  await replicator.start();
  const stop = async () => {
    await replicator.finish();
    await database.close();
    await replicator.close();
  };
  atEnd(stop);
  return {
    file,
    store: real,
    now,
    replicator,
    note: (text: string) => write(async (tx) => void (await tx.run(sql`INSERT INTO notes (text) VALUES (${text})`))),
    setAway: (value: boolean) => {
      isAway = value;
    },
    advance: (ms: number) => {
      offsetMs += ms;
    },
    async caughtUp() {
      // The log is observed every 50 ms: before that, a write is not known.
      let since = performance.now();
      await until("the replica to catch up", () => {
        const { lag_seconds, error } = replicator.status();
        if (lag_seconds > 0 || error !== null) since = performance.now();
        return performance.now() - since > 200;
      });
    },
    async restored(at: number | null = null) {
      const path = join(emptyFolder(), "restored.db");
      const result = await restoreReplica(real, { at, path });
      const copy = new Sqlite(path);
      try {
        expect(copy.prepare("PRAGMA integrity_check").all([])).toEqual([{ integrity_check: "ok" }]);
        const rows = copy.prepare("SELECT text FROM notes ORDER BY id").all([]) as { text: string }[];
        return { ...result, notes: rows.map(({ text }) => text), remarks: result.notes };
      } finally {
        copy.close();
      }
    },
  };
}

const keysOf = async (store: ObjectStore) => (await Array.fromAsync(listAll(store, ""))).map(({ key }) => key);

test("every time of the window can be restored, and what only older times need is deleted", async () => {
  const { note, advance, caughtUp, restored, now, store } = await replicatedDatabase({ retentionDays: 7 });
  const times: number[] = [];
  await caughtUp();
  for (let day = 0; day < 12; day++) {
    await note(`day ${day}`);
    await caughtUp();
    times.push(now());
    // A snapshot is due after a day in which something was written.
    advance(DAY_MS);
    await caughtUp();
    await note(`evening ${day}`);
    await until("the snapshot of the day", async () =>
      (await listSnapshots(store)).some(({ at }) => at > (times[day] as number)),
    );
    await caughtUp();
  }
  const oldest = async () => (await listSnapshots(store))[0]?.at as number;
  await until("the deletion of old snapshots", async () => (await oldest()) > (times[1] as number));
  // One from before the window is needed for its beginning.
  expect(await oldest()).toBeLessThanOrEqual(now() - 7 * DAY_MS);
  const [generation] = await listGenerations(store);
  const segments = (await Array.fromAsync(listSegments(store, generation?.generation as string, -1))).flat();
  expect(segments[0]?.number).toBeGreaterThan(1);
  for (const [day, at] of times.entries()) {
    if (at < now() - 7 * DAY_MS) continue;
    const { notes, remarks } = await restored(at);
    expect(notes.at(-1)).toBe(`day ${day}`);
    expect(notes).toHaveLength(day * 2 + 1);
    expect(remarks).toEqual([]);
  }
  await expect(restored(times[0])).rejects.toThrow(/^The replica begins at .*; choose a later time with --at\.$/);
});

test("nothing is deleted while no snapshot from before the window exists", async () => {
  const { note, advance, caughtUp, restored, now, store } = await replicatedDatabase({ retentionDays: 1 });
  await note("first");
  await caughtUp();
  const first = now();
  const before = await keysOf(store);
  advance(DAY_MS / 2);
  await caughtUp();
  await note("second");
  await caughtUp();
  advance(DAY_MS / 2 - 60_000);
  await caughtUp();
  await note("third");
  await caughtUp();
  expect(await keysOf(store)).toEqual(expect.arrayContaining(before));
  expect((await restored(first)).notes).toEqual(["first"]);
});

test("a replica that is away for too long begins a new generation, and the log stays small", async () => {
  const maxLogBytes = 2 * 2 ** 20;
  const { note, setAway, caughtUp, restored, file, store, replicator, now } = await replicatedDatabase({ maxLogBytes });
  await note("before");
  await caughtUp();
  const before = now();
  setAway(true);
  const awaySince = performance.now();
  const text = "x".repeat(3000);
  for (let count = 0; count < 6000; count++) {
    await note(`${count} ${text}`);
  }
  const awaySeconds = (performance.now() - awaySince) / 1000;
  expect(replicator.status()).toMatchObject({ error: expect.stringContaining("switched it off") });
  expect(replicator.status().lag_seconds).toBeGreaterThan(awaySeconds / 2);
  // 18 MB were written, several times as much with the pages around them, some of it between two looks at the log.
  expect(statSync(`${file}-wal`).size).toBeLessThan(8 * maxLogBytes);
  setAway(false);
  await caughtUp();
  expect(await listGenerations(store)).toHaveLength(2);
  const whole = await restored();
  expect([whole.notes.length, whole.remarks]).toEqual([6001, []]);
  const early = await restored(before);
  expect(early.notes).toEqual(["before"]);
  // Between the two there is nothing, and the result says so.
  expect(early.remarks).toEqual([expect.stringContaining("nothing that can be restored between")]);
  const [, second] = await listGenerations(store);
  const between = await restored((second?.at as number) - 1);
  expect(between.notes.length).toBeLessThan(6001);
  expect(between.remarks).toEqual([expect.stringContaining("nothing that can be restored between")]);
});

test("a program that empties the log costs a generation, but no data", async () => {
  const { note, caughtUp, restored, file, store } = await replicatedDatabase();
  await note("before");
  await caughtUp();
  const other = new Sqlite(file);
  // Twice, so that the replicator cannot see each log before the next one.
  for (const text of ["by another program", "again"])
    other.exec(`INSERT INTO notes (text) VALUES ('${text}'); PRAGMA wal_checkpoint(RESTART)`);
  await note("after");
  await until("a new generation", async () => (await listGenerations(store)).length === 2);
  other.close();
  await caughtUp();
  expect((await restored()).notes).toEqual(["before", "by another program", "again", "after"]);
});

test("so does one that appends to a log that was already copied to the database", async () => {
  const { note, advance, caughtUp, restored, file, store } = await replicatedDatabase();
  await note("before");
  await caughtUp();
  const had = (await listSnapshots(store)).length;
  // It reads to the end of the log, so the log can be copied but not restarted.
  const reader = new Sqlite(file);
  reader.exec("BEGIN");
  reader.prepare("SELECT * FROM notes").all([]);
  await note("last");
  reader.exec("COMMIT; BEGIN");
  reader.prepare("SELECT * FROM notes").all([]);
  advance(DAY_MS + 1000);
  await until("another snapshot", async () => (await listSnapshots(store)).length > had);
  await caughtUp();
  const other = new Sqlite(file);
  other.exec("INSERT INTO notes (text) VALUES ('by another program')");
  reader.exec("COMMIT");
  other.exec("PRAGMA wal_checkpoint(RESTART)");
  await note("after");
  await until("a new generation", async () => (await listGenerations(store)).length === 2);
  other.close();
  reader.close();
  await caughtUp();
  expect((await restored()).notes).toEqual(["before", "last", "by another program", "after"]);
});

test("a snapshot taken during checkpoints is consistent", async () => {
  const { note, advance, caughtUp, restored, store } = await replicatedDatabase();
  await caughtUp();
  const text = "y".repeat(2000);
  let count = 0;
  for (let day = 0; day < 4; day++) {
    advance(DAY_MS + 1000);
    await caughtUp();
    const had = (await listSnapshots(store)).length;
    const writing = (async () => {
      while ((await listSnapshots(store)).length === had || count % 500 !== 0)
        await Promise.all(Array.from({ length: 20 }, () => note(`${count++} ${text}`)));
    })();
    await writing;
  }
  await caughtUp();
  const { notes, at } = await restored();
  expect(notes).toHaveLength(count);
  for (const snapshot of await listSnapshots(store)) {
    const old = await restored(snapshot.at);
    expect(old.at).toBeGreaterThanOrEqual(snapshot.at);
    expect(old.at).toBeLessThanOrEqual(at);
    expect(notes.slice(0, old.notes.length)).toEqual(old.notes);
  }
});

import { execFileSync } from "node:child_process";
import { rmSync, writeFileSync } from "node:fs";
import { eq, sql } from "drizzle-orm";
import { expect, test } from "vitest";
import { isUniqueViolation } from "#storage/db/failures.ts";
import { StorageFull } from "#storage/objects/store.ts";
import { bare, notes, notesDatabase, stored } from "#test/support/storage/database.ts";
import { smallDisk } from "#test/support/storage/small-disk.ts";

test("works run in order, and their results are returned", async () => {
  const { write, db, file } = await notesDatabase();
  const ids = await Promise.all(
    Array.from({ length: 600 }, (_, i) =>
      write(async (tx) => {
        const [row] = await tx
          .insert(notes)
          .values({ body: `note ${i}` })
          .returning();
        return row?.id;
      }),
    ),
  );
  expect(ids).toEqual(Array.from({ length: 600 }, (_, i) => i + 1));
  expect(stored(file)).toHaveLength(600);
  expect(await db.$count(notes)).toBe(600);
});

test("a work that throws is rolled back alone", async () => {
  const { write, file } = await notesDatabase();
  const fault = new Error("mine");
  const results = await Promise.allSettled([
    write((tx) => tx.insert(notes).values({ body: "a" })),
    write(async (tx) => {
      await tx.insert(notes).values({ body: "b" });
      throw fault;
    }),
    write((tx) => tx.insert(notes).values({ body: "a" })),
    write((tx) => tx.insert(notes).values({ body: "c" })),
  ]);
  expect(results.map((r) => r.status)).toEqual(["fulfilled", "rejected", "rejected", "fulfilled"]);
  expect((results[1] as PromiseRejectedResult).reason).toBe(fault);
  expect(isUniqueViolation((results[2] as PromiseRejectedResult).reason)).toBe(true);
  expect(stored(file)).toEqual(["a", "c"]);
});

test("no work is settled before it is committed, refused ones included", async () => {
  const { write, file } = await notesDatabase();
  const [first, refused, last] = await Promise.all([
    write((tx) => tx.insert(notes).values({ body: "a" })).then(() => stored(file)),
    write((tx) => tx.insert(notes).values({ body: "a" })).then(
      () => expect.unreachable("the same body is taken twice"),
      () => stored(file),
    ),
    write((tx) => tx.insert(notes).values({ body: "b" })).then(() => stored(file)),
  ]);
  // A slow machine may commit them in two groups: each must see its own writes, and the reason of its refusal.
  expect(first).toContain("a");
  expect(refused).toContain("a");
  expect(last).toEqual(["a", "b"]);
});

test("a constraint that fails at COMMIT fails the work that violated it, and no other", async () => {
  const { write, db } = await notesDatabase();
  await write(async (tx) => {
    await tx.run(
      sql`CREATE TABLE replies (id INTEGER PRIMARY KEY, note_id INTEGER REFERENCES notes (id) DEFERRABLE INITIALLY DEFERRED)`,
    );
  });
  const results = await Promise.allSettled([
    write((tx) => tx.insert(notes).values({ body: "a" })),
    write((tx) => tx.run(sql`INSERT INTO replies (note_id) VALUES (99)`)),
    write((tx) => tx.insert(notes).values({ body: "b" })),
  ]);
  expect(results.map((r) => r.status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
  expect(await db.$count(notes)).toBe(2);
  expect(await db.values(sql`SELECT count(*) FROM replies`)).toEqual([[0]]);
});

test("a work that makes SQLite end the whole transaction does not affect others", async () => {
  const { write, file } = await notesDatabase();
  const results = await Promise.allSettled([
    write((tx) => tx.insert(notes).values({ body: "a" })),
    write((tx) => tx.run(sql`INSERT OR ROLLBACK INTO notes (body) VALUES ('a')`)),
    write((tx) => tx.insert(notes).values({ body: "b" })),
  ]);
  expect(results.map((r) => r.status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
  expect(stored(file)).toEqual(["a", "b"]);
});

test("a nested transaction is rolled back alone when the work catches its error", async () => {
  const { write, file } = await notesDatabase();
  await write(async (tx) => {
    await tx.insert(notes).values({ body: "outer" });
    await tx
      .transaction(async (inner) => {
        await inner.insert(notes).values({ body: "inner" });
        await inner.transaction((innermost) => innermost.insert(notes).values({ body: "innermost" }));
        throw new Error("never mind");
      })
      .catch(() => {});
    await tx.transaction((inner) => inner.insert(notes).values({ body: "second" }));
  });
  expect(stored(file)).toEqual(["outer", "second"]);
});

test("a work that waits for something else than the database is aborted, and its late statements are refused", async () => {
  const { write, file } = await notesDatabase({ workLimitMs: 30 });
  const { promise: outside, resolve: release } = Promise.withResolvers<void>();
  const { promise: late, resolve: lateRan } = Promise.withResolvers<unknown>();
  const slow = write(async (tx) => {
    await tx.insert(notes).values({ body: "slow" });
    await outside;
    await tx.insert(notes).values({ body: "late" }).then(lateRan, lateRan);
  });
  await expect(slow).rejects.toThrow("ran no SQL for 30 ms");
  await write(async (tx) => {
    await tx.insert(notes).values({ body: "next" });
    release();
    await late;
  });
  expect(String((await late) as Error)).toContain("Failed query");
  expect(stored(file)).toEqual(["next"]);
});

test("a write inside a write is refused instead of waiting for itself", async () => {
  const { write } = await notesDatabase();
  await expect(write(() => write(async () => 1))).rejects.toThrow("write() inside a write()");
});

test("a work may not end the transaction that it shares", async () => {
  const { write } = await notesDatabase();
  await expect(write((tx) => tx.run(sql`COMMIT`))).rejects.toThrow();
});

test("the reader refuses to write", async () => {
  const { db, file } = await notesDatabase();
  const refused = await db
    .insert(notes)
    .values({ body: "no" })
    .then(
      () => null,
      (error: Error) => String(error.cause),
    );
  expect(refused).toContain("readonly");
  expect(stored(file)).toEqual([]);
});

test("the event loop continues between groups", async () => {
  const { write } = await notesDatabase();
  let turns = 0;
  let writing = true;
  const count = () => {
    turns++;
    if (writing) setImmediate(count);
  };
  setImmediate(count);
  await Promise.all(
    Array.from({ length: 2000 }, (_, i) => write((tx) => tx.insert(notes).values({ body: `note ${i}` }))),
  );
  writing = false;
  expect(turns).toBeGreaterThanOrEqual(2000 / 256);
});

test("close() completes queued works", async () => {
  const { write, close, file } = await notesDatabase();
  const all = Array.from({ length: 50 }, (_, i) => write((tx) => tx.insert(notes).values({ body: `note ${i}` })));
  await close();
  expect(stored(file)).toHaveLength(50);
  await Promise.all(all);
  await expect(write(async () => 1)).rejects.toThrow("closed");
});

test("a killed process loses nothing that was acknowledged", async () => {
  const { file } = await notesDatabase();
  const program = `
    import { openDatabase } from ${JSON.stringify(new URL("../../../storage/db/open.ts", import.meta.url).href)};
    import { sql } from ${JSON.stringify(import.meta.resolve("drizzle-orm"))};
    import { writeSync } from "node:fs";
    const { write } = await openDatabase({ url: "file:" + process.argv[1] });
    let done = 0;
    for (let i = 0; i < 500; i++) {
      write((tx) => tx.run(sql\`INSERT INTO notes (body) VALUES (\${"note " + i})\`)).then(() => {
        writeSync(1, "note " + i + "\\n");
        if (++done === 300) process.kill(process.pid, "SIGKILL");
      });
    }`;
  let told = "";
  try {
    execFileSync(process.execPath, ["--input-type=module", "-e", program, file], { encoding: "utf8", stdio: "pipe" });
  } catch (error) {
    told = (error as { stdout: string }).stdout;
  }
  const names = told.trim().split("\n");
  expect(names.length).toBeGreaterThanOrEqual(300);
  expect(stored(file)).toEqual(expect.arrayContaining(names));
});

test("a full disk throws StorageFull, nothing is partially written, and the queue continues when there is space again", async (context) => {
  const disk = smallDisk(context, 5);
  const reserve = `${disk.path}/reserve`;
  writeFileSync(reserve, Buffer.alloc(1_000_000));
  const { write, db, file } = await notesDatabase({ at: disk.path });
  await write((tx) => tx.insert(notes).values({ body: "before" }));
  const huge = write(async (tx) => {
    await tx.insert(notes).values({ body: "half" });
    await tx.insert(notes).values({ body: "x".repeat(6_000_000) });
  });
  const small = write((tx) => tx.insert(notes).values({ body: "next to it" }));
  await expect(huge).rejects.toThrow(StorageFull);
  await small;
  expect(stored(file)).toEqual(["before", "next to it"]);

  disk.fill();
  const results = await Promise.allSettled(
    Array.from({ length: 300 }, (_, i) => write((tx) => tx.insert(notes).values({ body: `${i}`.padEnd(20_000) }))),
  );
  const failures = results.filter((r) => r.status === "rejected");
  expect(failures.length).toBeGreaterThan(0);
  for (const failure of failures) expect(failure.reason).toBeInstanceOf(StorageFull);
  const kept = results.length - failures.length;
  expect(await db.$count(notes)).toBe(2 + kept);

  rmSync(reserve);
  await write((tx) => tx.insert(notes).values({ body: "after" }));
  expect(await db.$count(notes, eq(notes.body, "after"))).toBe(1);
  expect(bare(file).prepare("PRAGMA integrity_check").all([])).toEqual([{ integrity_check: "ok" }]);
});

import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { UserError } from "#src/lib/base/errors.ts";
import { migrate } from "#storage/db/migrate.ts";
import { bare, folder } from "#test/support/storage/database.ts";
import { smallDisk } from "#test/support/storage/small-disk.ts";

const spine = { name: "0001_spine.sql", sql: "CREATE TABLE notes (id INTEGER PRIMARY KEY, body TEXT) STRICT;" };
const more = {
  name: "0002_more.sql",
  sql: "ALTER TABLE notes ADD COLUMN title TEXT; UPDATE notes SET title = body; CREATE INDEX by_title ON notes (title);",
};

const place = (at = folder()) => ({ at, file: join(at, "test.db"), url: `file:${join(at, "test.db")}` });
const names = (file: string) =>
  (bare(file).prepare("SELECT name FROM _migrations ORDER BY name").all([]) as { name: string }[]).map((r) => r.name);
const snapshots = (at: string) => readdirSync(at).filter((name) => name.includes(".before-"));

test("applies missing migrations, in order and once", async () => {
  const { at, file, url } = place();
  await migrate({ url, migrations: [more, spine] });
  expect(names(file)).toEqual(["0001_spine.sql", "0002_more.sql"]);
  await migrate({ url, migrations: [spine, more] });
  expect(snapshots(at)).toEqual([]);
});

test("copies a database with data before changing it, and keeps three copies", async () => {
  const { at, file, url } = place();
  const steps = [spine, more];
  await migrate({ url, migrations: [spine] });
  bare(file).exec("INSERT INTO notes (body) VALUES ('kept')");
  await migrate({ url, migrations: steps });
  expect(snapshots(at)).toEqual(["test.db.before-0002_more"]);
  const copy = bare(join(at, "test.db.before-0002_more"));
  expect(copy.prepare("SELECT * FROM notes").all([])).toEqual([{ id: 1, body: "kept" }]);
  expect(names(join(at, "test.db.before-0002_more"))).toEqual(["0001_spine.sql"]);

  for (const n of [3, 4, 5]) {
    steps.push({ name: `000${n}_x.sql`, sql: `CREATE TABLE x${n} (id INTEGER PRIMARY KEY)` });
    await migrate({ url, migrations: steps });
  }
  expect(snapshots(at)).toEqual([3, 4, 5].map((n) => `test.db.before-000${n}_x`));
});

test("refuses a database that is newer than the binary, and one with another history", async () => {
  const { url } = place();
  await migrate({ url, migrations: [spine, more] });
  await expect(migrate({ url, migrations: [spine] })).rejects.toThrow(/newer than this vodbox.*0002_more/s);
  const changed = { ...more, sql: `${more.sql} --` };
  await expect(migrate({ url, migrations: [spine, changed] })).rejects.toThrow(UserError);
  const between = { name: "0001b_between.sql", sql: "" };
  await expect(migrate({ url, migrations: [spine, between, more] })).rejects.toThrow(/its history differs/);
});

test("a migration that fails changes nothing, and earlier ones remain", async () => {
  const { file, url } = place();
  const broken = { name: "0003_broken.sql", sql: "CREATE TABLE half (id INTEGER); INSERT INTO nowhere VALUES (1);" };
  await expect(migrate({ url, migrations: [spine, more, broken] })).rejects.toThrow("nowhere");
  expect(names(file)).toEqual(["0001_spine.sql", "0002_more.sql"]);
  expect(bare(file).prepare("SELECT 1 FROM sqlite_schema WHERE name = 'half'").all([])).toEqual([]);
});

test("a referenced table can be rebuilt, and dangling references are detected", async () => {
  const { file, url } = place();
  const replies = {
    name: "0002_replies.sql",
    sql: "CREATE TABLE replies (id INTEGER PRIMARY KEY, note_id INTEGER REFERENCES notes (id) ON DELETE CASCADE);",
  };
  await migrate({ url, migrations: [spine, replies] });
  bare(file).exec("INSERT INTO notes (body) VALUES ('a'); INSERT INTO replies (note_id) VALUES (1)");
  const rebuild = {
    name: "0003_rebuild.sql",
    sql: `CREATE TABLE new_notes (id INTEGER PRIMARY KEY, body TEXT NOT NULL) STRICT; INSERT INTO new_notes SELECT * FROM notes;
      DROP TABLE notes; ALTER TABLE new_notes RENAME TO notes;`,
  };
  await migrate({ url, migrations: [spine, replies, rebuild] });
  expect(bare(file).prepare("SELECT count(*) AS n FROM replies").all([])).toEqual([{ n: 1 }]);
  const careless = { name: "0004_careless.sql", sql: "DELETE FROM notes" };
  await expect(migrate({ url, migrations: [spine, replies, rebuild, careless] })).rejects.toThrow(
    "left rows in replies with dangling references",
  );
});

test("killed during a migration, the next start finishes it", async () => {
  const { at, file, url } = place();
  await migrate({ url, migrations: [spine] });
  // Runs for far longer than it takes the parent to kill it.
  const endless = `CREATE TABLE half (n INTEGER); INSERT INTO half
    WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 1e11) SELECT n FROM c;`;
  const program = `
    import { migrate } from ${JSON.stringify(new URL("../../../storage/db/migrate.ts", import.meta.url).href)};
    import { writeSync } from "node:fs";
    const log = { info: (fields, message) => writeSync(1, message + "\\n"), warn() {} };
    await migrate({ ...JSON.parse(process.argv[1]), log });`;
  const migrations = [spine, { name: "0002_more.sql", sql: endless }];
  const child = spawn(process.execPath, ["--input-type=module", "-e", program, JSON.stringify({ url, migrations })], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let said = "";
  for await (const chunk of child.stdout) {
    said += chunk;
    if (said.includes("migrating")) break;
  }
  child.kill("SIGKILL");
  await once(child, "close");
  await migrate({ url, migrations: [spine, more] });
  expect(names(file)).toEqual(["0001_spine.sql", "0002_more.sql"]);
  expect(bare(file).prepare("SELECT 1 FROM sqlite_schema WHERE name = 'half'").all([])).toEqual([]);
  expect(snapshots(at)).toEqual(["test.db.before-0002_more"]);
});

test("no space for the copy: a clear error, and the database is unchanged", async (context) => {
  const disk = smallDisk(context, 4);
  const { file, url } = place(disk.path);
  await migrate({ url, migrations: [spine] });
  bare(file).exec(`INSERT INTO notes (body) VALUES ('${"x".repeat(500_000)}')`);
  disk.fill();
  await expect(migrate({ url, migrations: [spine, more] })).rejects.toThrow(UserError);
  expect(names(file)).toEqual(["0001_spine.sql"]);
  expect(existsSync(`${file}.before-0002_more.tmp`)).toBe(false);
});

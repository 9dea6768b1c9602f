import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import Sqlite from "libsql";
import { expect, test } from "vitest";
import { migrate } from "#storage/db/migrate.ts";
import { json, refused } from "#test/support/commands/outcome.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { run } from "#test/support/process.ts";

const MIGRATIONS = fileURLToPath(new URL("../../../storage/db/migrations/", import.meta.url));

async function doctor(dataDir: string) {
  const env = { VODBOX_LOG_LEVEL: "error" };
  const { code, stdout, stderr } = await run(["admin", "doctor", "--json", "--data", dataDir], { env });
  expect(stdout, stderr).not.toMatch(/Failed query/);
  const report = JSON.parse(stdout) as { ok: boolean; findings: { check: string; ok: boolean; detail: string }[] };
  return { code, report, faults: report.findings.filter(({ ok }) => !ok) };
}

test("doctor reports a damaged database in a finding, and serve in a sentence", async () => {
  const whole = emptyFolder();
  await json(["admin", "tenant", "create", "--name", "T", "--slug", "t", "--data", whole]);
  const file = join(whole, "vodbox.db");
  const closed = new Sqlite(file);
  closed.exec("PRAGMA wal_checkpoint(TRUNCATE)");
  closed.close();
  const damages: Record<string, (path: string) => void> = {
    truncated: (path) => truncateSync(path, 4096 * 3),
    overwritten: (path) => {
      const bytes = readFileSync(path);
      bytes.fill(0xa5, 4096, 4096 * 12);
      writeFileSync(path, bytes);
    },
    "no database": (path) => writeFileSync(path, "photographs of a cat, and nothing else at all\n".repeat(200)),
  };
  for (const [name, damage] of Object.entries(damages)) {
    const dataDir = emptyFolder();
    const copy = join(dataDir, "vodbox.db");
    copyFileSync(file, copy);
    damage(copy);
    const found = await doctor(dataDir);
    expect.soft([found.code, found.report.ok], name).toEqual([1, false]);
    expect
      .soft(found.faults, name)
      .toMatchObject([
        { check: "integrity", detail: expect.stringMatching(/is damaged.*restore a backup.*\.before-/) },
      ]);
    const sentence = await refused(["serve", "--workers", "0", "--port", "0", "--data", dataDir], 1);
    expect.soft(sentence, name).toMatch(/The database is damaged: .*restore a backup/);
  }
});

test("doctor without --fix creates and migrates nothing", async () => {
  const folder = emptyFolder();
  const mistyped = join(folder, "mistyped");
  const absent = await doctor(mistyped);
  expect([absent.code, absent.faults.map(({ detail }) => detail)]).toEqual([
    1,
    [expect.stringContaining(`the data directory ${mistyped} does not exist`)],
  ]);
  expect(existsSync(mistyped)).toBe(false);
  const empty = join(folder, "empty");
  mkdirSync(empty);
  expect(await doctor(empty)).toMatchObject({ code: 1, faults: [{ check: "database" }] });
  expect(readdirSync(empty)).toEqual([]);

  const older = emptyFolder();
  const migrations = readdirSync(MIGRATIONS)
    .sort()
    .map((name) => ({ name, sql: readFileSync(join(MIGRATIONS, name), "utf8") }));
  const file = join(older, "vodbox.db");
  await migrate({ url: `file:${file}`, migrations: migrations.slice(0, -1) });
  expect(await doctor(older)).toMatchObject({
    code: 0,
    report: {
      findings: [
        {
          check: "schema",
          detail: expect.stringContaining(`migrated by the next start, from ${migrations.at(-1)?.name}`),
        },
        { check: "integrity" },
      ],
    },
  });
  const after = new Sqlite(file);
  expect(after.prepare("SELECT count(*) AS count FROM _migrations").get([])).toMatchObject({
    count: migrations.length - 1,
  });
  after.close();
  expect(readdirSync(older).filter((name) => /before|secrets|server/.test(name))).toEqual([]);
});

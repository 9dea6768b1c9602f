import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { createClient } from "@libsql/client";
import { expect, test } from "vitest";
import { amount } from "#test/support/amount.ts";
import { csv, env, prepared, send } from "#test/support/imports.ts";
import { startServer } from "#test/support/process.ts";
import { seeded } from "#test/support/seed.ts";

/** Many batches, and a few seconds. */
const ROWS = amount(3000, 20_000);
/** The first one is not killed. */
const ROUNDS = amount(4, 8);

test("an import that is killed changes all rows or none", { timeout: 400_000 }, async () => {
  const { dataDir, importer } = await prepared(ROWS);
  const client = createClient({ url: `file:${join(dataDir, "vodbox.db")}` });
  const outcomes: string[] = [];
  let longest = 0;
  const random = seeded();
  for (let round = 0; round < ROUNDS; round++) {
    const server = await startServer(dataDir, { env });
    const title = `Round${round}`;
    const from = performance.now();
    const importing = send(server, importer.key, csv(title, ROWS)).then(
      ({ status }) => status,
      () => null,
    );
    // The first round measures the duration; the others are killed at some moment within it.
    if (round > 0) await Promise.race([importing, sleep((longest * (round - 1 + random.next())) / ROUNDS)]);
    else await importing;
    longest = Math.max(longest, performance.now() - from);
    server.child.kill("SIGKILL");
    await server.ended;
    const status = await importing;
    const again = await startServer(dataDir, { env });
    const counts = await client.execute({
      sql: "select count(*) as n from assets where tenant_id = ? and title like ?",
      args: [importer.id, `${title} %`],
    });
    const changed = Number(counts.rows[0]?.n);
    expect([0, ROWS]).toContain(changed);
    if (status === 200) expect(changed).toBe(ROWS);
    outcomes.push(changed === 0 ? "none" : "all");
    for (const table of ["imports", "import_rows"])
      expect(Number((await client.execute(`select count(*) as n from ${table}`)).rows[0]?.n), table).toBe(0);
    again.child.kill("SIGKILL");
    await again.ended;
  }
  client.close();
  console.info({ outcomes });
  expect(outcomes).toContain("none");
});

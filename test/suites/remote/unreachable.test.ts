import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { createClient } from "@libsql/client";
import { sql } from "drizzle-orm";
import { describe, expect, test } from "vitest";
import { CommitInDoubt } from "#storage/db/failures.ts";
import { openDatabase } from "#storage/db/open.ts";
import { amount, isNightly } from "#test/support/amount.ts";
import { testApp } from "#test/support/app.ts";
import { startCuttingRelay } from "#test/support/cutting-relay.ts";
import { until } from "#test/support/descendants.ts";
import { atEnd, emptyFolder } from "#test/support/folder.ts";
import { nightly } from "#test/support/nightly.ts";
import { startSqld } from "#test/support/sqld.ts";

const portOf = (url: string) => Number(new URL(url).port);

/** A program, its database server, and a relay between them that can be cut. */
async function behindRelay(options: { refuseSockets?: boolean } = {}) {
  const folder = join(emptyFolder(), "sqld");
  let sqld = await startSqld(folder);
  const relay = await startCuttingRelay(options);
  relay.lead(portOf(sqld.url));
  const app = await testApp({ database_url: relay.url, rate_limit_uploads: "1000000/60" });
  const tenant = await app.tenant();
  const key = await app.key(tenant.id);
  const make = (title: string) => app.as(key).initiateUpload({ filename: "a.mp4", bytes_expected: 1, title });
  return {
    app,
    tenant,
    key,
    relay,
    make,
    /** How often each title exists, queried on the server itself. */
    async stored(): Promise<Map<string, number>> {
      const client = createClient({ url: sqld.url });
      const { rows } = await client.execute("SELECT title, count(*) AS times FROM assets GROUP BY title");
      client.close();
      return new Map(rows.map(({ title, times }) => [String(title), Number(times)]));
    },
    async stop() {
      await sqld.stop();
      relay.lead(null);
    },
    async start() {
      sqld = await startSqld(folder);
      relay.lead(portOf(sqld.url));
    },
    url: () => sqld.url,
  };
}

describe.each([
  ["a WebSocket", {}],
  ["HTTP", { refuseSockets: true }],
])("over %s", (name, options) => {
  test("a connection that is cut at any point, COMMIT included, loses no write and repeats none", async () => {
    const { relay, make, stored } = await behindRelay(options);
    let cuts = 0;
    const titles: string[] = [];
    // The full tier tries every second place over HTTP: requests at odd ones, responses at even ones.
    const step = name === "HTTP" && !isNightly ? 2 : 1;
    for (const [first, side] of (["question", "answer"] as const).entries())
      for (let number = 1 + (step === 1 ? 0 : first); number <= 12; number += step) {
        relay.cut({ side, number });
        const title = `${side} ${number}`;
        const made = await make(title);
        expect([title, made.status, made.error?.code]).toEqual([title, 201, undefined]);
        titles.push(title);
        if (relay.isCut()) cuts++;
      }
    // A work's first statement, its others, and COMMIT: request and response of each.
    expect(cuts).toBeGreaterThanOrEqual(6 / step);
    expect(Object.fromEntries(await stored())).toEqual(Object.fromEntries(titles.map((title) => [title, 1])));
  });

  const killed = name === "HTTP" ? nightly : test;
  killed(
    "a server that is killed and restarted: every request is answered, acknowledged writes are there once",
    async () => {
      const { make, stored, stop, start } = await behindRelay(options);
      const acknowledged: string[] = [];
      const others: string[] = [];
      let isOver = false;
      const client = async (name: number) => {
        for (let number = 0; !isOver; number++) {
          const title = `${name} ${number}`;
          const { status, error } = await make(title);
          if (status === 201) acknowledged.push(title);
          else others.push(`${status} ${error.code}`);
        }
      };
      const clients = Array.from({ length: 16 }, (_, name) => client(name));
      for (let round = 1; round <= amount(1, 3); round++) {
        await until("writes continue", () => acknowledged.length > round * 50, 60_000);
        await stop();
        await start();
        const before = acknowledged.length;
        await until("it is used again", () => acknowledged.length > before, 60_000);
      }
      isOver = true;
      await Promise.all(clients);
      expect(new Set(others)).toEqual(new Set(others.length > 0 ? ["503 database_unavailable"] : []));
      const found = await stored();
      expect(acknowledged.filter((title) => found.get(title) !== 1)).toEqual([]);
      expect([...found].filter(([, times]) => times !== 1)).toEqual([]);
    },
  );
});

test("a COMMIT with an unknown result is reported as such, and not repeated", async () => {
  const sqld = await startSqld(join(emptyFolder(), "sqld"));
  const relay = await startCuttingRelay();
  relay.lead(portOf(sqld.url));
  const database = await openDatabase({ url: relay.url, lockWaitMs: 500 });
  atEnd(() => database.close());
  const note = (text: string) => database.write((tx) => tx.run(sql`INSERT INTO notes VALUES (${text})`));
  await database.write((tx) => tx.run(sql`CREATE TABLE notes (body TEXT)`));
  // The response to the work's one statement, then that to COMMIT.
  relay.cut({ side: "answer", number: 2, isFinal: true });
  const before = database.commits() as number;
  await expect(note("in doubt")).rejects.toThrow(CommitInDoubt);
  expect(relay.isCut()).toBe(true);
  // Values cached before may be wrong now.
  expect(database.commits()).toBeGreaterThan(before);
  relay.lead(portOf(sqld.url));
  await note("after it");
  expect(await database.db.all(sql`SELECT body FROM notes`)).toEqual([{ body: "in doubt" }, { body: "after it" }]);
});

test("while the server is unavailable /readyz and doctor report it and a write is 503; everything works when it is back", async () => {
  const { app, relay, make, key, stop, start } = await behindRelay();
  const { admin } = app;
  const ready = async () => (await app.as().getReadiness()).status;
  expect(await ready()).toBe(200);
  await stop();
  expect(await ready()).toBe(503);
  const { body: seen } = await app.as({ admin }).runQuickChecks();
  expect(seen).toMatchObject({
    ok: false,
    findings: expect.arrayContaining([
      expect.objectContaining({ check: "database", ok: false, detail: expect.stringContaining("is not responding") }),
    ]),
  });
  const silent = createServer(() => {}).listen(0, "127.0.0.1");
  atEnd(() => silent.close());
  await once(silent, "listening");
  relay.lead((silent.address() as AddressInfo).port);
  const from = performance.now();
  expect(await ready()).toBe(503);
  // It gives the database five seconds.
  expect(performance.now() - from).toBeLessThan(60_000);
  relay.lead(null);
  const refused = await make("while it is away");
  expect([refused.status, refused.error.code, refused.headers.get("retry-after")]).toEqual([
    503,
    "database_unavailable",
    "5",
  ]);
  expect((await app.as(key).listCollections()).error.code).toBe("database_unavailable");
  await start();
  expect(await ready()).toBe(200);
  expect((await app.as({ admin }).runQuickChecks()).body.findings[0]).toMatchObject({ ok: true });
  expect((await make("when it is back")).status).toBe(201);
});

test("a write waits while another server writes", async () => {
  const { make, url, stored } = await behindRelay();
  const client = createClient({ url: url() });
  const other = await client.transaction("write");
  await other.execute("UPDATE tenants SET name = 'held'");
  let isAnswered = false;
  const made = make("after the other").finally(() => {
    isAnswered = true;
  });
  await other.execute("SELECT 1");
  expect(isAnswered).toBe(false);
  await other.commit();
  client.close();
  expect((await made).status).toBe(201);
  expect((await stored()).get("after the other")).toBe(1);
});

test("queued works are committed together, and one that fails is rolled back alone", async () => {
  const { app, tenant, key, url } = await behindRelay();
  const { writes } = app.opened.app;
  const before = writes().commits;
  // They accumulate while another server writes.
  const client = createClient({ url: url() });
  const other = await client.transaction("write");
  await other.execute("UPDATE tenants SET name = 'held'");
  const making = Array.from({ length: 60 }, (_, n) =>
    app.as(key).createCollection({ tenant_id: tenant.id, collection: { name: `C ${n}`, slug: `c-${n % 20}` } }),
  );
  await until("all wait", async () => {
    // The server ends an idle transaction.
    await other.execute("SELECT 1");
    return writes().waiting >= 50;
  });
  await other.commit();
  client.close();
  const statuses = (await Promise.all(making)).map(({ status }) => status);
  expect(statuses.filter((status) => status === 201)).toHaveLength(20);
  expect(statuses.filter((status) => status === 422)).toHaveLength(40);
  expect((await app.as(key).listCollections()).body).toHaveLength(20);
  expect(writes().commits - before).toBeLessThan(20);
});

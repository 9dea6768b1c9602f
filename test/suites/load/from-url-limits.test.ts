import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { sql } from "drizzle-orm";
import { describe, expect, test } from "vitest";
import { startFetches } from "#features/uploads/fetches.ts";
import { type TestApp, testApp } from "#test/support/app.ts";
import { until } from "#test/support/descendants.ts";
import { atEnd } from "#test/support/folder.ts";
import { nightly } from "#test/support/nightly.ts";

const HOST = "127.0.0.2";
async function website(answer: RequestListener): Promise<string> {
  const server = createServer(answer).listen(0, HOST);
  await once(server, "listening");
  atEnd(async () => {
    server.closeAllConnections();
    server.close();
  });
  return `http://${HOST}:${(server.address() as AddressInfo).port}`;
}
const open = (flags: Record<string, unknown> = {}) =>
  testApp({ webhook_allow_cidrs: `${HOST}/32`, rate_limit_uploads: "100000/60", ...flags });

/** Claims due fetches at intervals, like the scheduled task. Returns the number of completed claims. */
function scheduled(app: TestApp): () => number {
  let isRunning = true;
  let claims = 0;
  const claim = () =>
    startFetches(app.opened.app).then(
      () => claims++,
      () => {},
    );
  const timer = setInterval(() => isRunning && void claim(), 100);
  atEnd(async () => {
    isRunning = false;
    clearInterval(timer);
  });
  return () => claims;
}
async function tenantOf(app: TestApp) {
  const tenant = await app.tenant();
  const key = await app.key(tenant.id);
  const from = async (url: string): Promise<number> => {
    const made = await app.as(key).uploadFromUrl({ url });
    expect(made.status, made.text).toBe(201);
    return made.body.id;
  };
  const session = async (id: number) => (await app.as(key).getUpload(id)).body;
  const errorOf = async (id: number) => {
    const { asset_id } = await session(id);
    return (await app.as(key).getAsset(asset_id)).body.error;
  };
  const stateOf = async (id: number) => (await session(id)).status;
  const plan = (plan_name: string) => app.as({ admin: app.admin }).updateTenant(tenant.id, { plan_name });
  return { ...tenant, key, from, session, stateOf, errorOf, plan };
}
/** Sends at `bytesPerSecond`, forever. */
const dripping =
  (bytesPerSecond: number, onOpen = () => {}, onClose = () => {}): RequestListener =>
  (_, response) => {
    onOpen();
    response.writeHead(200, { "content-type": "video/mp4" });
    const timer = setInterval(() => response.write(Buffer.alloc(Math.ceil(bytesPerSecond / 5))), 200);
    response.on("close", () => {
      clearInterval(timer);
      onClose();
    });
  };

describe("sources from URLs", () => {
  test("of one tenant that never end leave slots for another tenant's", async () => {
    const app = await open({ fetch_concurrency: 4 });
    let active = 0;
    let most = 0;
    const slow = await website(
      dripping(
        100_000,
        () => {
          most = Math.max(most, ++active);
        },
        () => {
          active--;
        },
      ),
    );
    const quick = await website((_, response) => void response.end("video"));
    const hostile = await tenantOf(app);
    const normal = await tenantOf(app);
    const theirs: number[] = [];
    for (let n = 0; n < 10; n++) theirs.push(await hostile.from(`${slow}/${n}.mp4`));
    scheduled(app);
    // Alone it uses all slots.
    await until("all places to be taken", () => active === 4);
    const id = await normal.from(`${quick}/a.mp4`);
    // The fetches in progress never end by themselves.
    await until("the other tenant's fetch", async () => (await normal.stateOf(id)) === "completed");
    expect(most).toBe(4);
    // A fetch that yielded has not failed; it restarts when a slot is free.
    for (const each of theirs) expect(await hostile.stateOf(each)).toBe("pending");
    await until("the place to be taken again", () => active === 4);
    const [{ failures }] = (await app.opened.app.db.all<{ failures: number }>(
      sql`select sum(failures) as failures from source_fetches`,
    )) as [{ failures: number }];
    expect(failures).toBe(0);
  });

  test("are limited to two per tenant while others wait", async () => {
    const app = await open({ fetch_concurrency: 8 });
    const active = new Map<string, number>();
    const slow = await website((request, response) => {
      const who = (request.url as string)[1] as string;
      const count = (by: number) => active.set(who, (active.get(who) ?? 0) + by);
      dripping(
        100_000,
        () => count(1),
        () => count(-1),
      )(request, response);
    });
    const tenants = await Promise.all(["a", "b", "c"].map(async (name) => ({ ...(await tenantOf(app)), name })));
    for (const { name, from } of tenants) for (let n = 0; n < 5; n++) await from(`${slow}/${name}${n}`);
    const begun = scheduled(app);
    await until("two of each", () => [...active.values()].join() === "2,2,2");
    // Two slots are left, and the schedule claims nothing for them.
    const before = begun();
    await until("more rounds of the schedule", () => begun() >= before + 5);
    expect(Object.fromEntries(active)).toEqual({ a: 2, b: 2, c: 2 });
  });

  nightly("below the minimum rate fail without a retry", async () => {
    const app = await open();
    const slow = await website(dripping(1000));
    const fine = await website(dripping(40_000));
    const tenant = await tenantOf(app);
    const bad = await tenant.from(`${slow}/a.mp4`);
    const silent = await tenant.from(
      `${await website((_, response) => void response.writeHead(200).flushHeaders())}/b.mp4`,
    );
    const good = await tenant.from(`${fine}/c.mp4`);
    scheduled(app);
    await until("the failure", async () => (await tenant.stateOf(bad)) === "failed", 100_000);
    expect((await tenant.errorOf(bad)).code).toBe("source_too_slow");
    expect((await tenant.errorOf(bad)).message).toContain("16384 bytes per second");
    await until("the other failure", async () => (await tenant.stateOf(silent)) === "failed");
    expect((await tenant.errorOf(silent)).code).toBe("source_too_slow");
    expect(await tenant.stateOf(good)).toBe("pending");
  });

  nightly("whose response header never ends are aborted", async () => {
    const app = await open();
    const site = await website(() => {});
    const tenant = await tenantOf(app);
    const id = await tenant.from(`${site}/a.mp4`);
    scheduled(app);
    await until(
      "the first attempt to end",
      async () => {
        const [row] = await app.opened.app.db.all<{ failures: number }>(sql`select failures from source_fetches`);
        return (row?.failures ?? 0) > 0;
      },
      80_000,
    );
    expect(await tenant.stateOf(id)).toBe("pending");
  });
});

describe("the plan's storage", () => {
  test("is checked before a byte of a source with a declared size is stored", async () => {
    const app = await open();
    let written = 0;
    const site = await website((_, response) => {
      response.writeHead(200, { "content-length": 5_000_000_001 });
      response.write(Buffer.alloc(1000), () => {
        written += 1000;
      });
    });
    const tenant = await tenantOf(app);
    await tenant.plan("free");
    const id = await tenant.from(`${site}/a.mp4`);
    await Promise.all(await startFetches(app.opened.app));
    expect(await tenant.stateOf(id)).toBe("failed");
    expect((await tenant.errorOf(id)).code).toBe("quota_exceeded");
    expect(written).toBeLessThanOrEqual(1000);
  });

  test("is announced during a fetch, and limits one without a declared size", async () => {
    const app = await open();
    const announced = async (id: number) =>
      (await app.opened.app.db.all<{ n: number }>(sql`select announced_bytes as n from tenants where id = ${id}`))[0]
        ?.n;
    const site = await website(dripping(1_000_000));
    const tenant = await tenantOf(app);
    await tenant.plan("free");
    const body = { filename: "a.mp4", bytes_expected: 5_000_000_000 - 3_000_000 };
    const other = await app.as(tenant.key).initiateUpload(body);
    expect(other.status).toBe(201);
    const id = await tenant.from(`${site}/a.mp4`);
    const running = await startFetches(app.opened.app);
    await until("bytes to be announced", async () => (await announced(tenant.id)) === 5_000_000_000);
    const again = await app.as(tenant.key).initiateUpload({ ...body, bytes_expected: 1 });
    expect(again.status).toBe(403);
    await Promise.all(running);
    expect(await tenant.stateOf(id)).toBe("failed");
    expect((await tenant.errorOf(id)).code).toBe("quota_exceeded");
    expect(await announced(tenant.id)).toBe(body.bytes_expected);
    expect((await app.opened.app.objects?.list(""))?.objects).toEqual([]);
  });
});

import { Readable } from "node:stream";
import { beforeEach, describe, expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import type { Answer } from "#test/support/client.ts";
import { expectError } from "#test/support/error.ts";
import { callback, next, putArtifacts, uploaded } from "#test/support/flow.ts";
import { finish, nextTask } from "#test/support/tasks.ts";

let app: TestApp;
let tenant: { id: number; slug: string };
let key: string;
beforeEach(async () => {
  app = await testApp();
  tenant = await app.tenant();
  key = await app.key(tenant.id);
});

type Lease = { contract: any; asset: any; sign(paths: string[], method: "GET" | "PUT"): Promise<Answer> };

const MEDIA = { duration_seconds: 4, width: 640, height: 360, frame_rate: 30, renditions: [] };
const claimed = (body: any, asset: any): Lease => ({
  contract: body,
  asset,
  sign: (paths, method) =>
    app.call("POST", body.artifacts.sign_url, {
      worker: app.worker,
      lease: body.lease.token,
      ...(body.attempt_id && { headers: { "x-svc-job-attempt-id": String(body.attempt_id) } }),
      body: { paths, method },
    }),
});

/** What a worker leases: a whole job, the same by the fenced API, and a task of a job. */
const LEASES: Record<string, () => Promise<Lease>> = {
  job: async () => {
    const { asset } = await uploaded(app, key);
    return claimed((await next(app)).body, asset);
  },
  "fenced job": async () => {
    const { asset } = await uploaded(app, key);
    const { body } = await app.as({ worker: app.worker }).claimCloudJob({ worker_id: "w1" });
    return claimed(body, asset);
  },
  task: async () => {
    const { asset } = await uploaded(app, key);
    return claimed((await nextTask(app)).body, asset);
  },
};

const answer = (lease: Lease, name: "complete" | "fail" | "release", body: unknown) =>
  app.call("POST", lease.contract.callbacks[`${name}_url`], {
    worker: app.worker,
    lease: lease.contract.lease.token,
    ...(lease.contract.attempt_id && { headers: { "x-svc-job-attempt-id": String(lease.contract.attempt_id) } }),
    body,
  });

const expectOk = ({ status, text }: Answer) => expect([status, status < 300 ? "" : text]).toEqual([status, ""]);

/** All that ends a lease. */
const ENDS: Record<string, (lease: Lease) => Promise<unknown>> = {
  completed: async (lease) => {
    if (lease.contract.task) return finish(app, lease.contract);
    const paths = await putArtifacts(app, lease.contract);
    expectOk(await answer(lease, "complete", { ...paths, media: MEDIA }));
  },
  failed: async (lease) =>
    expectOk(await answer(lease, "fail", { error_code: "encode_failed", error_message: "no", retryable: false })),
  released: async (lease) => expectOk(await answer(lease, "release", {})),
  canceled: async ({ contract }) => expectOk(await app.as({ admin: app.admin }).cancelJob(contract.job.id, {})),
  expired: async () => app.advance(60 * 60_000),
  "taken over by another worker": async () => {
    app.advance(60 * 60_000);
    await app.runTask("recover-leases");
    await next(app, undefined, { worker_id: "w2", capabilities: { tasks: 1 } });
  },
  "without its token": async () => expectOk(await app.as({ admin: app.admin }).rotateToken("worker", {})),
  "of a deleted asset": async ({ asset }) => expectOk(await app.as(key).deleteAsset(asset.id)),
  "of a deleted tenant": async () =>
    expectOk(await app.as({ admin: app.admin }).deleteTenant(tenant.id, { confirm: tenant.slug })),
};

const rows = Object.keys(LEASES).flatMap((lease) => Object.keys(ENDS).map((end) => [lease, end] as const));
const objectsOf = async (prefix: string) =>
  (await app.opened.app.objects?.list(prefix))?.objects.map(({ key: name, etag }) => `${name} ${etag}`) ?? [];

describe("a worker's URLs end with its lease", () => {
  test.each(rows)("%s: %s", async (kind, end) => {
    const lease = await (LEASES[kind] as () => Promise<Lease>)();
    const { prefix } = lease.contract.outputs;
    const paths = ["low/1.m4s", "thumbnail.jpg", "new.m4s"].map((name) => prefix + name);
    const puts = (await lease.sign(paths, "PUT")).body;
    const gets = (await lease.sign(paths.slice(0, 1), "GET")).body;
    expectOk(await app.call("PUT", puts[0].url, { raw: "segment" }));
    expect((await app.call("GET", gets[0].url)).text).toBe("segment");
    expect((await app.call("GET", lease.contract.source.url)).text).toBe("not really a video");
    // This one begins within the lease, and its body ends after it.
    let release = (_: string) => {};
    const rest = new Promise<string>((resolve) => {
      release = resolve;
    });
    let began = () => {};
    const beginning = new Promise<void>((resolve) => {
      began = resolve;
    });
    const slow = app.call("PUT", puts[1].url, {
      raw: Readable.toWeb(
        Readable.from(
          (async function* () {
            yield Buffer.from("hostile");
            began();
            yield Buffer.from(await rest);
          })(),
        ),
      ) as unknown as RequestInit["body"],
    });
    await beginning;
    await (ENDS[end] as (lease: Lease) => Promise<unknown>)(lease);
    const before = await objectsOf(prefix);
    release(" body");
    const answers = [
      await slow,
      ...(await Promise.all(puts.map(({ url }: any) => app.call("PUT", url, { raw: "hostile" })))),
      await app.call("GET", gets[0].url),
      await app.call("GET", lease.contract.source.url),
    ];
    for (const each of answers) expect([403, 404], each.text).toContain(each.status);
    expect(await objectsOf(prefix)).toEqual(before);
  });

  test("the heartbeat renews them", async () => {
    const lease = await (LEASES.job as () => Promise<Lease>)();
    const [{ url }] = (await lease.sign([`${lease.contract.outputs.prefix}a.m4s`], "PUT")).body;
    for (let minute = 0; minute < 60; minute += 1) {
      app.advance(60_000);
      expectOk(await callback(app, lease.contract, "heartbeat", { progress: 1 }));
    }
    expectOk(await app.call("PUT", url, { raw: "bytes" }));
    expect((await app.call("GET", lease.contract.source.url)).status).toBe(200);
  });

  test("the reason is in the error, and a URL without its lease is altered", async () => {
    const lease = await (LEASES.job as () => Promise<Lease>)();
    const [{ url }] = (await lease.sign([`${lease.contract.outputs.prefix}a.m4s`], "PUT")).body;
    expectOk(await answer(lease, "release", {}));
    expectError(await app.call("PUT", url, { raw: "bytes" }), 403, "address_revoked");
    const without = new URL(url);
    without.searchParams.delete("lease");
    expectError(await app.call("PUT", without.href, { raw: "bytes" }), 403, "address_invalid");
  });
});

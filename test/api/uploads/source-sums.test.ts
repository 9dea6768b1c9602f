import { createHash } from "node:crypto";
import { beforeEach, expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import { until } from "#test/support/descendants.ts";
import { callback, next, putArtifacts, readyAsset, uploaded } from "#test/support/flow.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { startServer, stopCleanly, tenantKey } from "#test/support/process.ts";
import { steppedClock } from "#test/support/stepped-clock.ts";
import { nextTask, runAll } from "#test/support/tasks.ts";

const sum = (bytes: string | Uint8Array) => createHash("sha256").update(bytes).digest("hex");

let app: TestApp;
let key: string;
beforeEach(async () => {
  app = await testApp();
  key = await app.key((await app.tenant()).id);
});
const sumOf = async (id: number) => (await app.as(key).getAsset(id)).body.source_sha256;
const duplicates = async (sha256: string) => (await app.as(key).listDuplicates({ sha256 })).body.duplicates;
/** Keys of objects that the server reads from its storage. */
function reads(): string[] {
  const objects = app.opened.app.objects as NonNullable<TestApp["opened"]["app"]["objects"]>;
  const keys: string[] = [];
  const { get } = objects;
  objects.get = (object, range) => {
    keys.push(object);
    return get.call(objects, object, range);
  };
  return keys;
}

test("the checksum of a source that workers read in parts is computed once, and finds duplicates", async () => {
  const bytes = Buffer.alloc(3_000_000, "film");
  const made = await uploaded(app, key, { bytes });
  expect((await runAll(app)).at(-1)).toBe("images");
  const alike = await readyAsset(app, key, { bytes });
  expect([await sumOf(made.asset.id), await sumOf(alike.asset.id)]).toEqual([null, null]);
  const keys = reads();
  await app.newEvents();
  await app.runTask("sum-sources");
  expect(keys).toHaveLength(2);
  expect(await sumOf(made.asset.id)).toBe(sum(bytes));
  expect((await duplicates(sum(bytes))).map(({ asset_id }: { asset_id: number }) => asset_id)).toEqual([
    alike.asset.id,
    made.asset.id,
  ]);
  await app.runTask("sum-sources");
  expect(keys).toHaveLength(2);
  expect(await app.newEvents()).toEqual([]);
});

test("a source whose checksum was announced or reported, or that is gone, is not read", async () => {
  const announced = await readyAsset(app, key, { sha256: "a".repeat(64) });
  const reported = await uploaded(app, key);
  const { body: contract } = await next(app);
  const media = { duration_seconds: 4, source_sha256: "b".repeat(64) };
  const done = await callback(app, contract, "complete", { ...(await putArtifacts(app, contract)), media });
  expect(done.status).toBe(200);
  const gone = await readyAsset(app, key);
  const deleted = await readyAsset(app, key);
  expect((await app.as(key).deleteSource(gone.asset.id)).status).toBe(200);
  expect((await app.as(key).deleteAsset(deleted.asset.id)).status).toBe(204);
  app.advance(120_000);
  await app.runTask("sweep-objects");
  const keys = reads();
  await app.runTask("sum-sources");
  expect(keys.filter((one) => one !== gone.asset.source_key)).toEqual([]);
  expect(await sumOf(gone.asset.id)).toBeNull();
  expect([await sumOf(announced.asset.id), await sumOf(reported.asset.id)]).toEqual(["a".repeat(64), "b".repeat(64)]);
});

test("a source that cannot be read is read again later", async () => {
  const made = await readyAsset(app, key, { bytes: "one film" });
  const other = await readyAsset(app, key, { bytes: "another film" });
  const objects = app.opened.app.objects as NonNullable<TestApp["opened"]["app"]["objects"]>;
  const { get } = objects;
  let tries = 0;
  objects.get = (object, range) => {
    if (object !== made.asset.source_key) return get.call(objects, object, range);
    tries++;
    return Promise.reject(new Error("The storage is not available."));
  };
  for (let round = 0; round < 4; round++) await app.runTask("sum-sources");
  // The first repetition is immediate.
  expect(tries).toBe(2);
  expect([await sumOf(made.asset.id), await sumOf(other.asset.id)]).toEqual([null, sum("another film")]);
  objects.get = get;
  app.advance(600_000);
  await app.runTask("sum-sources");
  expect(await sumOf(made.asset.id)).toBe(sum("one film"));
});

test("a server that was killed after the job was complete computes it after its start", async () => {
  const dataDir = emptyFolder();
  const server = await startServer(dataDir);
  const tenant = await tenantKey(server);
  const made = await uploaded(server, tenant, { bytes: "a film" });
  await nextTask(server).then(({ body }) => callback(server, body, "release"));
  const { body: contract } = await next(server);
  const media = { duration_seconds: 4 };
  const done = await callback(server, contract, "complete", { ...(await putArtifacts(server, contract)), media });
  expect(done.status).toBe(200);
  server.child.kill("SIGKILL");
  await server.ended;
  // Ten minutes later: a source that the killed server was reading belongs to it for five.
  const again = await startServer(dataDir, { env: steppedClock(600_000).env });
  await until("the checksum is there", async () => {
    const { body } = await again.as(tenant).getAsset(made.asset.id);
    return body.source_sha256 === sum("a film");
  });
  await stopCleanly(again);
});

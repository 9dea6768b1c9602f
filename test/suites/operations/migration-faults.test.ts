import { beforeAll, expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import { expectError } from "#test/support/error.ts";
import { readyAsset } from "#test/support/flow.ts";
import { newFolder } from "#test/support/folder.ts";
import { startRelay } from "#test/support/relay.ts";
import { type S3Server, s3Server } from "#test/support/s3-server.ts";
import { BUCKET, fill, inOrder, localAt, PATH, s3At, s3Settings, sumsOf } from "./setup.ts";

let s3: S3Server;
beforeAll(async () => {
  s3 = await s3Server();
  await s3.bucket(BUCKET);
});

const state = async ({ call, admin }: TestApp) => (await call("GET", PATH, { admin })).body;
const begin = ({ call, admin }: TestApp, to: string, more = {}) => call("POST", PATH, { admin, body: { to, ...more } });
/** Runs everything that can be done now. */
async function migrated(app: TestApp, to: string, more = {}) {
  const begun = await begin(app, to, more);
  expect(begun.status).toBe(202);
  await app.runTask("migrate-storage");
  return state(app);
}

test("an impossible migration is refused with a message, and changes nothing", async () => {
  const bare = await testApp();
  expect(await state(bare)).toMatchObject({ active: "local", phase: "settled", to: null, old_copies: null });
  const lacking = await begin(bare, "s3");
  expectError(lacking, 422, "validation_failed");
  expect(lacking.body.error).toContain("VODBOX_S3_ENDPOINT, VODBOX_S3_BUCKET");
  expectError(await begin(bare, "tape"), 422, "validation_failed");
  for (const [method, path] of [
    ["POST", "pause"],
    ["POST", "cancel"],
    ["DELETE", "old_copies"],
  ] as const)
    expectError(await bare.call(method, `${PATH}/${path}`, { admin: bare.admin }), 409, "migration_conflict");
  const key = await bare.key((await bare.tenant()).id);
  expectError(await bare.call("POST", PATH, { key, body: { to: "s3" } }), 401, "unauthorized");
  expect((await begin(bare, "local")).body).toMatchObject({ active: "local", phase: "settled" });

  const gone = await testApp({ ...s3Settings({ ...s3, endpoint: "http://127.0.0.1:9" }, "gone") });
  const answer = await begin(gone, "s3");
  expectError(answer, 422, "validation_failed");
  expect(answer.body.error).toContain("127.0.0.1:9");
  expect(await state(gone)).toMatchObject({ phase: "settled", error: null });

  const off = await testApp({ storage: "none" });
  expectError(await begin(off, "s3"), 503, "storage_not_configured");
});

test("damaged or old objects in the target are detected by verification, and copied again", async () => {
  const dataDir = newFolder();
  const app = await testApp(s3Settings(s3, "damaged"), dataDir);
  const ledger = await fill(localAt(dataDir), 30);
  const target = s3At(s3, "damaged");
  const damaged = "tenants/1/extra/large.mp4";
  const longer = "tenants/1/extra/segments/1/1.m4s";
  await target.put(damaged, Buffer.alloc(20_000_003, "x"));
  await target.put(longer, Buffer.from("left from long ago"));
  await target.put("elsewhere/of somebody else", Buffer.from("not ours"));
  const quick = await begin(app, "s3", { quick: true, dry_run: true });
  expect(quick.body).toMatchObject({ objects: ledger.size, objects_there: 1 });
  expect(await migrated(app, "s3")).toMatchObject({
    phase: "settled",
    active: "s3",
    old_copies: "local",
    fixed: 1,
    error: null,
    verified: ledger.size,
    copied: { objects: ledger.size },
  });
  expect(inOrder(await sumsOf(target, "tenants/"))).toEqual(inOrder(ledger));
  expect(await target.head("elsewhere/of somebody else")).not.toBeNull();
  // Old copies are deleted only when the active store has the object.
  await target.delete(longer);
  expect((await app.call("DELETE", `${PATH}/old_copies`, { admin: app.admin })).status).toBe(202);
  await app.runTask("migrate-storage");
  expect((await localAt(dataDir).list("tenants/")).objects.map(({ key }) => key)).toEqual([longer]);
  expect(await state(app)).toMatchObject({ phase: "settled", old_copies: null });
});

test("an unavailable target stops the migration and nothing else; it continues when the target is back", async () => {
  const relay = await startRelay();
  const port = Number(new URL(s3.endpoint).port);
  relay.lead(port);
  const dataDir = newFolder();
  const app = await testApp(s3Settings({ ...s3, endpoint: relay.base }, "away"), dataDir);
  const ledger = await fill(localAt(dataDir), 60);
  const key = await app.key((await app.tenant()).id);
  const { asset } = await readyAsset(app, key, { playback_policy: "public" });
  // After some megabytes every connection breaks, and no new one is accepted.
  relay.lead(9);
  relay.cutAfter(0, 1000);
  expectError(await begin(app, "s3"), 422, "validation_failed");
  relay.reset();
  relay.lead(port);
  const still = relay.holdAfter(3_000_000);
  expect((await begin(app, "s3")).status).toBe(202);
  await still;
  relay.lead(9);
  relay.cutAfter(0, 1000);
  expect((await app.call("POST", `${PATH}/pause`, { admin: app.admin })).body).toMatchObject({ paused: true });
  expect(await state(app)).toMatchObject({ phase: "copying", active: "local", paused: true, running: false });
  const { body } = await app.as(key).getPlayback(asset.id);
  expect((await app.call("GET", body.hls_url)).status).toBe(200);
  await readyAsset(app, key);
  expectError(await begin(app, "local"), 409, "migration_conflict");
  relay.reset();
  relay.lead(port);
  expect(await migrated(app, "s3")).toMatchObject({ phase: "settled", active: "s3", fixed: 0, error: null });
  expect(inOrder(await sumsOf(s3At(s3, "away"), "tenants/1/extra/"))).toEqual(inOrder(ledger));
});

test("canceled before the switch, everything stays where it was, and the copies can be deleted", async () => {
  const dataDir = newFolder();
  const relay = await startRelay();
  relay.lead(Number(new URL(s3.endpoint).port));
  const app = await testApp(s3Settings({ ...s3, endpoint: relay.base }, "given-up"), dataDir);
  const ledger = await fill(localAt(dataDir), 30);
  const still = relay.holdAfter(3_000_000);
  await begin(app, "s3");
  await still;
  const given = await app.call("POST", `${PATH}/cancel`, { admin: app.admin });
  expect(given.body).toMatchObject({ active: "local", phase: "settled", old_copies: "s3", to: null });
  relay.reset();
  expect(inOrder(await sumsOf(localAt(dataDir), "tenants/"))).toEqual(inOrder(ledger));
  expect((await app.call("DELETE", `${PATH}/old_copies`, { admin: app.admin })).status).toBe(202);
  await app.runTask("migrate-storage");
  const target = s3At(s3, "given-up");
  expect((await target.list("tenants/")).objects).toEqual([]);
  for await (const left of target.listMultiparts("tenants/")) expect(left).toBeUndefined();
  expect(inOrder(await sumsOf(localAt(dataDir), "tenants/"))).toEqual(inOrder(ledger));
});

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { beforeAll, expect, test, vi } from "vitest";
import { s3Store } from "#storage/objects/s3.ts";
import { filledServer, operator, ownServer } from "#test/support/backups.ts";
import { refused } from "#test/support/commands/outcome.ts";
import { until } from "#test/support/descendants.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { nightly } from "#test/support/nightly.ts";
import { type S3Server, s3Server, s3Settings } from "#test/support/s3-server.ts";

vi.setConfig({ testTimeout: 600_000 });

const BUCKETS = ["backups-one", "backups-two"] as const;
let s3: S3Server;
beforeAll(async () => {
  s3 = await s3Server();
  for (const bucket of BUCKETS) await s3.bucket(bucket);
});

type Place = { bucket: (typeof BUCKETS)[number]; prefix: string };
const settings = ({ bucket, prefix }: Place) => ({
  ...s3Settings(s3, bucket),
  VODBOX_S3_PREFIX: prefix,
});
const storeAt = ({ bucket, prefix }: Place) => s3Store({ ...s3, bucket, pathStyle: true, prefix: `${prefix}/` });

/** Every object under a tenant's prefix, by its bytes. */
async function contents(place: Place): Promise<Map<string, Buffer>> {
  const store = storeAt(place);
  const { objects } = await store.list("tenants/");
  const read = async (key: string) => buffer((await store.get(key))?.body as NodeJS.ReadableStream);
  return new Map(await Promise.all(objects.map(async ({ key }) => [key, await read(key)] as const)));
}

const plays = async (server: Awaited<ReturnType<typeof ownServer>>, key: string, assetId: number) => {
  const playback = await server.as(key).getPlayback(assetId);
  expect(playback.status).toBe(200);
  expect((await server.call("GET", playback.body.hls_url)).text).toContain("#EXTM3U");
  const original = await server.as(key).getDownload(assetId);
  expect(original.status).toBe(200);
  expect((await server.call("GET", original.body.url)).text).toBe("source of the first");
};

test("objects on S3 are backed up, restored to another bucket and to disk, and looked up in their location", async () => {
  const first: Place = { bucket: "backups-one", prefix: "live" };
  const { server, key, ready, dataDir } = await filledServer(emptyFolder(), settings(first));
  const there = await contents(first);
  expect(there.size).toBeGreaterThan(5);
  const folder = emptyFolder();
  const whole = join(folder, "whole.tar.zst");
  const bare = join(folder, "bare.tar");
  const one = operator(settings(first));
  const made = JSON.parse(await one.done("backup", whole, "--objects", "--json", "--data", dataDir));
  expect(made).toMatchObject({ storage: "s3", with_objects: true, objects: { missing: 0 } });
  await one.done("backup", bare, "--data", dataDir);
  server.child.kill("SIGTERM");
  await server.ended;

  // To another bucket, under another prefix.
  const second: Place = { bucket: "backups-two", prefix: "restored/here" };
  const two = operator(settings(second));
  const restored = join(folder, "restored");
  const told = JSON.parse(await two.done("restore", whole, "--json", "--data", restored));
  expect(told).toMatchObject({ ok: true, storage: "s3" });
  expect(existsSync(join(restored, "objects"))).toBe(false);
  const named = new Map(
    [...there].filter(([name]) => made.objects.count === there.size || !name.includes("/pictures/")),
  );
  expect(await contents(second)).toEqual(named);
  const again = await ownServer(restored, settings(second));
  await plays(again, key, ready.asset.id);

  // To local disk: the settings say so, and no bucket is needed.
  const local = join(folder, "local");
  expect(await operator().done("restore", whole, "--data", local)).toContain("are in the directory");
  for (const [name, bytes] of named) expect(readFileSync(join(local, "objects", name)), name).toEqual(bytes);
  await plays(await ownServer(local), key, ready.asset.id);

  // An archive with objects suffices for a check; without them, they are looked up in the bucket of the settings.
  expect(await operator().done("restore", whole, "--check")).toMatch(/^No faults in /);
  expect(await one.done("restore", bare, "--check")).toMatch(/^No faults in /);
  expect(await two.done("restore", bare, "--check")).toMatch(/^No faults in /);
  const third: Place = { bucket: "backups-two", prefix: "empty" };
  const none = await operator(settings(third)).cli("restore", bare, "--check");
  expect([none.code, none.stdout]).toEqual([
    1,
    expect.stringMatching(/FAULT .* objects are missing or changed in storage/),
  ]);

  // Without objects in the archive the rows are restored, and the objects are where they were.
  const rows = join(folder, "rows");
  expect(await one.done("restore", bare, "--data", rows)).toContain("must be in storage before you run serve");
  await plays(await ownServer(rows, settings(first)), key, ready.asset.id);
});

test("an unavailable or missing bucket is reported, and nothing is left in the directory", async () => {
  const place: Place = { bucket: "backups-one", prefix: "away" };
  const { server, dataDir } = await filledServer(emptyFolder(), settings(place));
  const folder = emptyFolder();
  const file = join(folder, "a.tar");
  await operator(settings(place)).done("backup", file, "--objects", "--data", dataDir);
  server.child.kill("SIGTERM");
  await server.ended;
  const fresh = join(folder, "data");
  const gone = { ...settings(place), VODBOX_S3_BUCKET: "backups-none" };
  expect(await operator(gone).failed("restore", file, "--data", fresh)).toMatch(/bucket|NoSuchBucket|404/i);
  expect(readdirSync(fresh).filter((name) => !name.startsWith("server."))).toEqual([]);
  const { VODBOX_S3_BUCKET: _, ...unnamed } = settings(place);
  const sentence = await refused(["admin", "restore", file, "--data", fresh], 2, { env: unnamed });
  expect(sentence).toContain("VODBOX_S3_BUCKET");
  // The same directory is accepted once the settings are right.
  await operator(settings(place)).done("restore", file, "--data", fresh);
});

nightly("a backup from during a migration to S3 is restored to disk: the migration has ended", async () => {
  const place: Place = { bucket: "backups-one", prefix: "moving" };
  const env = { ...settings(place), VODBOX_STORAGE: "local" };
  const { server, key, ready, dataDir } = await filledServer(emptyFolder(), env);
  const { admin } = server;
  // An upload in progress keeps the migration from completing.
  const begun = await server.as(key).initiateUpload({ filename: "b.mp4", bytes_expected: 10 });
  expect(begun.status).toBe(201);
  expect((await server.as({ admin }).startMigration({ to: "s3" })).status).toBeLessThan(300);
  await until("the switch", async () => (await server.as({ admin }).getMigration()).body.phase === "draining", 120_000);
  const folder = emptyFolder();
  const file = join(folder, "a.tar");
  const made = JSON.parse(await operator(env).done("backup", file, "--objects", "--json", "--data", dataDir));
  expect(made.objects.missing).toBe(0);
  server.child.kill("SIGTERM");
  await server.ended;
  const restored = join(folder, "restored");
  await operator().done("restore", file, "--data", restored);
  const again = await ownServer(restored);
  await plays(again, key, ready.asset.id);
  const status = await again.as({ admin }).getMigration();
  expect(status.body).toMatchObject({ active: "local", phase: "settled", old_copies: null, started_at: null });
});

import { createHash, randomBytes } from "node:crypto";
import { readdirSync, readFileSync, renameSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { refused } from "#test/support/commands/outcome.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { nightly } from "#test/support/nightly.ts";
import { lineOf, type RunningServer, run, startServer, vodbox } from "#test/support/process.ts";
import { startRelay } from "#test/support/relay.ts";

const MIB = 2 ** 20;
const PART = 16 * MIB;
/** Request headers, and what a socket buffered without the server receiving it. */
const SLACK = 2 * MIB;

const sha256 = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");

/** A server behind a relay, a key, and an environment for `vodbox push`. */
async function scene() {
  const folder = emptyFolder();
  const relay = await startRelay();
  const start = async (port = "0") => {
    const args = ["--port", port];
    const server = await startServer(join(folder, "data"), { args, env: { VODBOX_BASE_URL: relay.base } });
    const listening = await lineOf(server, /^listening on http:\/\/127\.0\.0\.1:(\d+)$/m);
    relay.lead(Number(listening[1]));
    return server;
  };
  const server = await start();
  const { admin } = server;
  const tenant = await server.as({ admin }).createTenant({ name: "Push", slug: "push" });
  const scopes = ["assets:read", "assets:write"];
  const issued = await server.as({ admin }).createApiKey({ tenant_id: tenant.body.id, scopes });
  const key = issued.body.token as string;
  const env = { VODBOX_SERVER: relay.base, VODBOX_KEY: key, VODBOX_CACHE_DIR: join(folder, "cache") };
  const file = (name: string, bytes: number) => {
    const path = join(folder, name);
    const content = randomBytes(bytes);
    writeFileSync(path, content);
    return { path, sha256: sha256(content) };
  };
  return { folder, relay, server, start, env, key, file };
}

async function sourceOf(server: RunningServer, key: string, assetId: number): Promise<string> {
  const { body } = await server.as(key).getDownload(assetId);
  return sha256(new Uint8Array(await (await fetch(body.url)).arrayBuffer()));
}
/** The single value on stdout; progress may be on stderr. */
async function pushed(args: string[], env: Record<string, string>) {
  const ended = await run([...args, "--json"], { env });
  expect(ended, ended.stderr).toMatchObject({ code: 0 });
  return JSON.parse(ended.stdout);
}
/** For each file that a run knows: whether all of it was stored. */
const statesIn = ({ VODBOX_CACHE_DIR: cache }: { VODBOX_CACHE_DIR: string }) =>
  readdirSync(join(cache, "push")).map(
    (name) => JSON.parse(readFileSync(join(cache, "push", name), "utf8")).done === true,
  );

test("files large and small arrive complete, several at once, with their metadata", async () => {
  const { server, env, key, file } = await scene();
  const files = [file("small.mp4", 1000), file("large.mp4", 2 * PART + 5), file("exact.mp4", 2 * PART)];
  const args = [
    "push",
    ...files.map(({ path }) => path),
    "--jobs",
    "4",
    "--tag",
    "year=2026",
    "--playback-policy",
    "public",
  ];
  const done = await pushed(args, env);
  expect(done.map(({ path }: { path: string }) => path)).toEqual(files.map(({ path }) => path));
  for (const [at, { asset_id }] of done.entries()) {
    expect(await sourceOf(server, key, asset_id)).toBe(files[at]?.sha256);
    const { body } = await server.as(key).getAsset(asset_id);
    expect(body).toMatchObject({ tags: { year: "2026" }, playback_policy: "public", input_status: "uploaded" });
  }
  const small = await server.as(key).getAsset(done[0].asset_id);
  expect(small.body).toMatchObject({ title: "small", source_sha256: files[0]?.sha256 });
  expect(statesIn(env)).toEqual([true, true, true]);
  expect((await server.as(key).listJobs()).body).toHaveLength(3);
});

test("killed during an upload, the next run sends at most one part again", async () => {
  const { server, relay, env, key, file } = await scene();
  const { path, sha256: sum } = file("film.mp4", 5 * PART + 1000);
  const size = 5 * PART + 1000;
  let total = 0;
  for (const after of [2.6 * PART, 1.3 * PART]) {
    relay.reset();
    const still = relay.holdAfter(after);
    const pushing = vodbox(["push", path], { env });
    await still;
    pushing.child.kill("SIGKILL");
    expect((await pushing.ended).signal).toBe("SIGKILL");
    total += relay.sent();
    expect(statesIn(env)).toEqual([false]);
  }
  relay.reset();
  const [done] = await pushed(["push", path], env);
  total += relay.sent();
  // Two kills, so twice a part.
  expect(total).toBeGreaterThan(size);
  expect(total).toBeLessThanOrEqual(size + 2 * PART + SLACK);
  expect(await sourceOf(server, key, done.asset_id)).toBe(sum);
  expect((await server.as(key).listAssets()).body).toHaveLength(1);
  expect(statesIn(env)).toEqual([true]);
});

nightly("a changed file is another one, and is not mixed with the old one", async () => {
  const { server, relay, env, key, file } = await scene();
  const { path } = file("film.mp4", 3 * PART);
  const still = relay.holdAfter(1.5 * PART);
  const pushing = vodbox(["push", path], { env });
  await still;
  pushing.child.kill("SIGKILL");
  await pushing.ended;
  relay.reset();
  const changed = file("film.mp4", 3 * PART);
  utimesSync(path, 1, 1);
  const [done] = await pushed(["push", path], env);
  expect(await sourceOf(server, key, done.asset_id)).toBe(changed.sha256);
});

test("a server that restarts during an upload is waited for", async () => {
  const { server, start, relay, env, key, file } = await scene();
  const { path, sha256: sum } = file("film.mp4", 4 * PART);
  const still = relay.holdAfter(1.5 * PART);
  const pushing = vodbox(["push", path, "--json"], { env });
  await still;
  server.child.kill("SIGKILL");
  await server.ended;
  relay.reset();
  const again = await start();
  const ended = await pushing.ended;
  expect(ended).toMatchObject({ code: 0 });
  expect(relay.sent()).toBeLessThanOrEqual(3 * PART + SLACK);
  const [done] = JSON.parse(ended.stdout);
  expect(await sourceOf(again, key, done.asset_id)).toBe(sum);
});

test("faults are reported in one sentence", async () => {
  const { server, env, folder, file } = await scene();
  const { path } = file("a.mp4", 1000);
  writeFileSync(join(folder, "empty.mp4"), "");
  const cases: [string[], Record<string, string>, RegExp][] = [
    [[path], { VODBOX_KEY: "svc_wrong" }, /The API key is missing, unknown, revoked or expired/],
    [
      [path],
      { VODBOX_SERVER: "http://127.0.0.1:2" },
      /The server at http:\/\/127\.0\.0\.1:2 is not responding \(ECONNREFUSED\)/,
    ],
    [[join(folder, "none.mp4")], {}, /The file .*none\.mp4 does not exist/],
    [[join(folder, "empty.mp4")], {}, /is empty/],
    [[folder], {}, /is not a file; to push a directory use --watch/],
    [["--watch", join(folder, "nothing")], {}, /cannot be watched \(ENOENT\)/],
  ];
  for (const [args, more, sentence] of cases)
    expect(await refused(["push", ...args], 1, { env: { ...env, ...more } })).toMatch(sentence);
  const { admin } = server;
  const reader = await server.as({ admin }).createApiKey({ tenant_id: 1, scopes: ["assets:read"] });
  const sentence = await refused(["push", path], 1, { env: { ...env, VODBOX_KEY: reader.body.token } });
  expect(sentence).toMatch(/The key needs the scope assets:write/);
});

nightly("--watch pushes new complete files, once, over runs", async () => {
  const { server, env, folder, key, file } = await scene();
  const inbox = emptyFolder();
  const appear = (name: string) => {
    const { path, sha256: sum } = file("made.mp4", 5000);
    renameSync(path, join(inbox, name));
    return sum;
  };
  const first = appear("one.mp4");
  appear("two.mp4.part");
  const watch = () => vodbox(["push", "--watch", inbox, "--json"], { env });
  const watching = watch();
  const [, one = ""] = await lineOf(watching, /^(\{.*one\.mp4.*\})$/m);
  expect(await sourceOf(server, key, JSON.parse(one).asset_id)).toBe(first);
  renameSync(join(inbox, "two.mp4.part"), join(inbox, "two.mp4"));
  await lineOf(watching, /two\.mp4"/);
  watching.child.kill("SIGINT");
  expect(await watching.ended).toMatchObject({ code: 130 });
  appear("three.mp4");
  const again = watch();
  await lineOf(again, /three\.mp4"/);
  again.child.kill("SIGKILL");
  await again.ended;
  expect(again.stdout().trim().split("\n")).toHaveLength(1);
  const titles = (await server.as(key).listAssets()).body.map(({ title }: { title: string }) => title);
  expect(titles.sort()).toEqual(["one", "three", "two"]);
  expect(folder).not.toBe(inbox);
});

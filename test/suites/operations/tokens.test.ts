import { linkSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { firstStart, json, refused, succeeded } from "#test/support/commands/outcome.ts";
import { jobNow, rowsOf, startWorker, untilEncoding, uploadClip } from "#test/support/crash/encoding.ts";
import { until } from "#test/support/descendants.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { fast, ffmpeg, picture } from "#test/support/media/sources.ts";
import { startServer, stopCleanly } from "#test/support/process.ts";

const next = (key: string) => ({ headers: { "idempotency-key": key }, body: {} });
/** No token in the environment: these are the data directory's own. */
const own = { VODBOX_ADMIN_TOKEN: "", VODBOX_WORKER_TOKEN: "" };

describe("the tokens", () => {
  test("are generated at the first start, all different, in files that others cannot read", async () => {
    const dataDir = emptyFolder();
    await firstStart(dataDir);
    const tokens = await json(["admin", "token", "show", "--data", dataDir]);
    expect(Object.keys(tokens)).toEqual(["admin", "worker", "live", "metrics"]);
    const server = await startServer(dataDir, { env: own });
    expect((await server.as({ admin: tokens.admin }).listTenants()).status).toBe(200);
    expect((await server.as({ admin: tokens.worker }).listTenants()).status).toBe(401);
    const secrets = readdirSync(join(dataDir, "secrets")).map((name) => join(dataDir, "secrets", name));
    expect(new Set(secrets.map((path) => readFileSync(path, "utf8"))).size).toBe(5);
    for (const path of [...secrets, join(dataDir, "local-proof"), join(dataDir, "server.json")])
      expect((statSync(path).mode & 0o777).toString(8), path).toBe("600");
    expect((statSync(dataDir).mode & 0o777).toString(8)).toBe("700");
    const shown = await succeeded(["admin", "token", "show", "worker", "--data", dataDir]);
    expect(shown.stdout).toBe(`${tokens.worker}\n`);
  });

  test("are replaced immediately, with and without a server, and never partially", async () => {
    const dataDir = emptyFolder();
    const at = ["--data", dataDir];
    await firstStart(dataDir);
    const before = await json(["admin", "token", "show", ...at]);
    // The old file continues under another name: it must be replaced, not overwritten, or a crash could leave it empty.
    linkSync(join(dataDir, "secrets/admin_token"), join(dataDir, "old"));
    const alone = await json(["admin", "token", "rotate", "admin", ...at]);
    expect(readFileSync(join(dataDir, "old"), "utf8").trim()).toBe(before.admin);

    const server = await startServer(dataDir, { env: own });
    const status = async (admin: string) => (await server.as({ admin }).listTenants()).status;
    expect([await status(before.admin), await status(alone.token)]).toEqual([401, 200]);
    const served = await succeeded(["admin", "token", "rotate", "admin", ...at]);
    expect([await status(alone.token), await status(served.stdout.trim())]).toEqual([401, 200]);
    expect(await json(["admin", "tenant", "list", ...at])).toEqual([]);
    server.child.kill("SIGKILL");
    await server.ended;
    const again = await startServer(dataDir, { env: own });
    const answer = await again.as({ admin: served.stdout.trim() }).listTenants();
    expect(answer.status).toBe(200);
  });

  test("that come from settings are changed there", async () => {
    const dataDir = emptyFolder();
    await firstStart(dataDir);
    const at = ["--data", dataDir];
    const env = { VODBOX_WORKER_TOKEN: "a-token-of-the-settings" };
    const sentence = await refused(["admin", "token", "rotate", "worker", ...at], 1, { env });
    expect(sentence).toBe("vodbox: The worker token comes from the settings (environment); change it there.\n");
  });
});

test("a worker with a wrong token gets an error and exits", async () => {
  const server = await startServer(emptyFolder());
  const worker = startWorker(server, emptyFolder(), {
    env: { VODBOX_WORKER_TOKEN: "a-token-of-another-server", VODBOX_LOG_LEVEL: "error" },
  });
  const ended = await worker.ended;
  expect(ended).toMatchObject({ code: 1, stdout: "" });
  expect(ended.stderr).toMatch(
    /^vodbox: The server at http:\S+ rejected the worker token; .*VODBOX_WORKER_TOKEN.*\.\n$/,
  );
});

test("a worker token that is rotated during an encode costs the local worker nothing", async () => {
  const dataDir = emptyFolder();
  const clips = emptyFolder();
  const clip = join(clips, "clip.mp4");
  const tiny = join(clips, "tiny.mp4");
  await ffmpeg(...picture("1280x720", "30", 5), ...fast, clip);
  await ffmpeg(...picture("160x90", "25", 1), ...fast, tiny);
  await firstStart(dataDir);
  const { worker: old, admin } = await json(["admin", "token", "show", "--data", dataDir]);
  const started = await startServer(dataDir, {
    args: ["--workers", "1"],
    // Progress is seen with heartbeats, every quarter of the lease.
    env: { ...own, VODBOX_RATE_LIMIT_UPLOADS: "100000/60", VODBOX_LEASE_SECONDS: "12" },
  });
  const server = { ...started, admin };
  const made = await uploadClip(server, clip);
  await untilEncoding(server, made, server.child.pid as number);
  const { token } = await json(["admin", "token", "rotate", "worker", "--data", dataDir]);
  const statuses = await Promise.all(
    [old, token].map(async (worker) => (await server.as({ worker, ...next(worker) }).claimJob()).status),
  );
  expect(statuses).toEqual([401, 204]);
  await until("the job is complete", async () => (await jobNow(server, made)).status === "completed");
  // And the next one is issued with the new token.
  const second = await uploadClip(server, tiny, "second");
  await until("the next is complete", async () => (await jobNow(server, second)).status === "completed");
  await stopCleanly(server);
  const { attempts, events } = rowsOf(dataDir);
  expect(attempts.map((row) => [row.attempt, row.outcome])).toEqual([
    [1, "completed"],
    [1, "completed"],
  ]);
  expect(events.map((event) => event.type)).not.toContain("video.job.failed");
});

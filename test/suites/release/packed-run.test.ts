import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, existsSync, mkdtempSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { isNightly } from "#test/support/amount.ts";
import { type Call, client } from "#test/support/client.ts";
import { uploaded } from "#test/support/flow.ts";
import { atEnd, newFolder, removeFolder } from "#test/support/folder.ts";
import { nightly } from "#test/support/nightly.ts";
import { EXECUTABLE, type Started, stopCleanly, watched } from "#test/support/process.ts";
import { typedClient } from "#test/support/typed-client.ts";
import { processesWith, untilProcesses } from "#test/support/worker/processes.ts";

/** The single file in an empty directory, with an empty environment: no PATH, no HOME, no Node, no ffmpeg. */
let folder: string;
let clip: Buffer;
beforeAll(() => {
  if (!existsSync(EXECUTABLE)) throw new Error("dist/vodbox is missing: npm run build makes it.");
  folder = newFolder();
  copyFileSync(EXECUTABLE, join(folder, "vodbox"));
  const path = join(folder, "clip.mp4");
  const sources = ["-f", "lavfi", "-i", "testsrc2=size=320x180:rate=30:duration=2", "-f", "lavfi", "-i", "sine=d=2"];
  execFileSync("ffmpeg", ["-v", "error", ...sources, "-c:v", "libx264", "-pix_fmt", "yuv420p", "-c:a", "aac", path]);
  clip = readFileSync(path);
});
afterAll(() => removeFolder(folder));

/** Killed at the end of the test, if it still runs. */
const start = (...args: string[]): Started => startWith({}, ...args);

function startWith(env: Record<string, string>, ...args: string[]): Started {
  return watched(
    spawn("./vodbox", args, { cwd: folder, env: env as NodeJS.ProcessEnv, stdio: ["ignore", "pipe", "pipe"] }),
  );
}

/** The output of the process once it contains `pattern`. */
async function untilPrinted({ child, stdout, ended }: Started, pattern: RegExp): Promise<string> {
  let isOver = false;
  const over = ended.then(() => {
    isOver = true;
  });
  for (;;) {
    const found = pattern.exec(stdout());
    if (found) return found[1] as string;
    if (isOver) throw new Error(`It ended before ${pattern}: ${JSON.stringify(await ended)}`);
    await Promise.race([once(child.stdout as NodeJS.EventEmitter, "data"), over]);
  }
}

async function admin(...args: string[]): Promise<any> {
  const { code, stdout, stderr } = await start("admin", ...args, "--json").ended;
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  return JSON.parse(stdout);
}

/**
 * The worker and its child processes have the data directory or the extracted programs below `folder` in their paths.
 */
const ours = () => processesWith(folder);
const lines = (playlist: string) => playlist.split("\n").filter((line) => line !== "" && !line.startsWith("#"));

async function untilReady(call: Call, key: string, id: number): Promise<void> {
  for (;;) {
    const { body } = await typedClient(call)(key).getAsset(id);
    if (body.playback_status === "ready") return;
    if (body.playback_status === "errored") throw new Error(JSON.stringify(body.error));
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

// Encoding gets the processor time that other tests leave.
describe("the executable alone, in an empty environment", () => {
  test("is a whole platform: tenant, key, upload, transcoding, playback, and a graceful stop", async () => {
    const server = start("serve", "--port", "0");
    const base = await untilPrinted(server, /^vodbox ready on (\S+)$/m);
    await admin("tenant", "create", "--name", "Acme", "--slug", "acme");
    const scopes = "assets:read,assets:write,playback:read";
    const { token: key } = await admin("key", "issue", "--tenant", "acme", "--scopes", scopes);

    const call = client(base);
    const { asset } = await uploaded({ call }, key, { bytes: clip });
    await untilReady(call, key, asset.id);
    const playback = await typedClient(call)(key).getPlayback(asset.id);
    const master = await call("GET", playback.body.hls_url);
    expect(master.text).toContain("RESOLUTION=320x180");
    const variant = new URL(lines(master.text)[0] as string, playback.body.hls_url);
    const playlist = await call("GET", variant.href);
    const segment = await fetch(new URL(lines(playlist.text)[0] as string, variant));
    expect([segment.status, segment.headers.get("content-type")]).toEqual([200, "video/iso.segment"]);
    expect((await segment.arrayBuffer()).byteLength).toBeGreaterThan(1000);
    const page = await call("GET", `/watch/${asset.external_id}?token=${playback.body.token}`);
    expect(page.text).toContain("<svc-player");
    expect((await call("GET", "/svc-player.js")).text).toContain("MediaSource");
    expect((await call("GET", "/docs")).status).toBe(200);

    const { ok } = await admin("doctor");
    expect(ok).toBe(true);
    await stopCleanly(server);
    expect(ours()).toEqual([]);
  });

  test("runs a demo and exits", async () => {
    const { code, stdout, stderr } = await start("demo", "--once", "--port", "0", "--seconds", "1", "--data", "once")
      .ended;
    expect({ code, stderr }).toMatchObject({ code: 0 });
    expect(stdout).toMatch(/http:\/\/127\.0\.0\.1:\d+\/watch\/vid_\w+/);
    expect(ours()).toEqual([]);
  });

  nightly("runs a demo and serves until it is stopped; a second demo uses that server", async () => {
    const demo = start("demo", "--port", "0", "--seconds", "1", "--data", "demo");
    const address = await untilPrinted(demo, /(http\S+\/watch\/\S+)/);
    const page = await fetch(address);
    expect([page.status, await page.text()]).toEqual([200, expect.stringContaining("<svc-player")]);
    const again = await start("demo", "--seconds", "1", "--data", "demo").ended;
    expect(again).toMatchObject({ code: 0, stdout: expect.stringContaining(new URL(address).origin) });
    expect((await fetch(address)).status).toBe(200);
    await stopCleanly(demo);
    expect(ours()).toEqual([]);
  });

  test("killed with -9, leaves no worker and no ffmpeg behind", async () => {
    // What a killed process cannot clean up is in this test's directory too.
    const temporary = mkdtempSync(join(folder, "tmp-"));
    atEnd(() => removeFolder(temporary));
    const demo = startWith({ TMPDIR: temporary }, "demo", "--port", "0", "--seconds", "10", "--data", "killed");
    const isEncoding = (line: string) => line.includes("/ffmpeg ") && line.includes("/killed/objects/");
    await untilProcesses(folder, (found) => found.some(isEncoding), 240_000);
    demo.child.kill("SIGKILL");
    await untilProcesses(folder, (found) => found.length === 0);
  });

  test("leaves nothing but its data", () => {
    expect(readdirSync(folder).sort()).toEqual([
      "clip.mp4",
      ...(isNightly ? ["demo"] : []),
      "killed",
      "once",
      "vodbox",
      "vodbox-data",
    ]);
  });
});

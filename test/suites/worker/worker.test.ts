import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { rows } from "#test/support/amount.ts";
import { binaries, fast, ffmpeg, picture, repeated, sound, temporaryFolder } from "#test/support/media/sources.ts";
import { smallDisk } from "#test/support/storage/small-disk.ts";
import { processesWith } from "#test/support/worker/processes.ts";
import { startWorker, type WorkerOptions } from "#worker/loop.ts";
import { type Call, ContractServer, LEASE, PREFIX, WORKER } from "./contract-server.ts";

const folder = temporaryFolder("worker");
const source = join(folder, "source.mp4");
/** Long enough that a test can act during its encode. */
const longSource = join(folder, "long.mp4");
/** Some seconds of encoding. */
const middling = join(folder, "middling.mp4");
let count = 0;

beforeAll(async () => {
  await ffmpeg(...picture("160x90", "25", 5), ...sound(5), ...fast, source);
  await repeated(middling, 12, [...picture("640x360", "10", 5), ...fast]);
  await repeated(longSource, 12, [...picture("1280x720", "30", 5), ...fast]);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Starts a worker for `server`; `stop` drains it and returns the duration of that. */
function work(server: ContractServer, options: Partial<WorkerOptions> = {}) {
  const controller = new AbortController();
  const scratchDir = join(folder, `scratch-${++count}`);
  const lines: string[] = [];
  const say = (fields: Record<string, unknown>, message: string) => lines.push(`${message} ${JSON.stringify(fields)}`);
  const done = startWorker({
    server: server.base,
    token: () => WORKER,
    workerId: "w1",
    scratchDir,
    binaries,
    signal: controller.signal,
    log: { info: say, warn: say, error: say },
    ...options,
  });
  done.catch(() => {});
  const stop = async () => {
    const start = performance.now();
    controller.abort();
    await done;
    return performance.now() - start;
  };
  return { done, stop, scratchDir, lines };
}

const expectTidy = (scratchDir: string) => {
  expect(readdirSync(scratchDir)).toEqual([]);
  expect(processesWith(scratchDir)).toEqual([]);
};

test("a job is fetched, encoded, published and completed", async () => {
  await using server = await ContractServer.start(source);
  const worker = work(server);
  await server.until((one) => one.named("complete").length > 0 && one.named("next").length > 1);
  await worker.stop();
  expect(server.named("next")[0]?.headers).toMatchObject({ "x-svc-worker-token": WORKER });
  // The first request does not wait, so that the worker can report at once that it is connected.
  expect(server.named("next")[0]?.body).toMatchObject({ worker_id: "w1", wait_seconds: 0 });
  expect(server.named("next")[1]?.body).toMatchObject({ worker_id: "w1", wait_seconds: 20 });
  const [complete] = server.named("complete");
  expect(complete?.headers["x-svc-job-lease-token"]).toBe(LEASE);
  expect(complete?.body).toMatchObject({
    manifest_path: `${PREFIX}master.m3u8`,
    dash_manifest_path: `${PREFIX}manifest.mpd`,
    thumbnail_path: `${PREFIX}thumbnail.jpg`,
    storyboard_path: `${PREFIX}storyboard.vtt`,
    subtitle_paths: {},
    media: {
      duration_seconds: 5,
      width: 160,
      height: 90,
      frame_rate: 25,
      renditions: [{ playlist_path: `${PREFIX}90p/playlist.m3u8` }],
    },
  });
  const bytesOf = (rendition: string) =>
    [...server.stored].reduce(
      (sum, [key, file]) =>
        sum + (/\/(\d+\.m4s|init\.mp4)$/.test(key) && key.includes(`/${rendition}/`) ? file.length : 0),
      0,
    );
  expect(complete?.body.media).toMatchObject({
    renditions: [{ name: "90p", bytes: bytesOf("90p") }],
    audio_renditions: [{ name: "audio", codecs: "mp4a.40.2", width: null, bytes: bytesOf("audio") }],
  });
  expect(bytesOf("audio")).toBeGreaterThan(10_000);
  const bytes = [...server.stored.values()].reduce((sum, file) => sum + file.length, 0);
  expect(complete?.body.media).toMatchObject({ bytes });
  for (const uri of ["master.m3u8", "manifest.mpd", "thumbnail.jpg", "90p/00002.m4s", "audio/init.mp4"])
    expect([...server.stored.keys()]).toContain(PREFIX + uri);
  const put = server.named("put").find((call) => call.headers["content-type"] === "application/dash+xml");
  expect(put?.headers["x-svc-worker-token"]).toBeUndefined();
  const beats = server
    .named("heartbeat")
    .map((call) => call.body as { progress: number; stage: string; worker_id: string });
  expect(beats.length).toBeGreaterThan(0);
  expect(beats[0]).toMatchObject({ worker_id: "w1" });
  expect(beats.every((one, index) => one.progress >= (beats[index - 1]?.progress ?? 0) && one.progress <= 100)).toBe(
    true,
  );
  expectTidy(worker.scratchDir);
});

test("on a shared disk nothing is transferred over HTTP", async () => {
  await using server = await ContractServer.start(source);
  const dataDir = join(folder, "data");
  const artifacts = join(dataDir, "objects", "out");
  mkdirSync(artifacts, { recursive: true });
  writeFileSync(join(artifacts, "left-over.m4s"), "from an attempt that was given back");
  writeFileSync(join(dataDir, "local-proof"), "nonce\n");
  server.proof = "nonce";
  server.localPaths = { source, artifacts };
  const worker = work(server, { sharedDisk: { dataDir } });
  await server.until((one) => one.named("complete").length > 0);
  await worker.stop();
  expect([...server.named("source"), ...server.named("put"), ...server.named("sign")]).toEqual([]);
  expect(worker.lines.join("\n")).toContain('"stage":"probing"');
  expect(worker.lines.join("\n")).not.toContain("downloading");
  expect(server.named("heartbeat").map(({ body }) => body.stage)).not.toContain("downloading");
  expect(readFileSync(join(artifacts, "master.m3u8"), "utf8")).toContain("90p/playlist.m3u8");
  expect(readdirSync(artifacts).sort()).toEqual([
    "90p",
    "audio",
    "manifest.mpd",
    "master.m3u8",
    "storyboard-1.jpg",
    "storyboard.vtt",
    "thumbnail.jpg",
  ]);
  expect(existsSync(source)).toBe(true);
});

test("broken connections and server errors lose nothing", async () => {
  await using server = await ContractServer.start(source);
  const seen = new Map<string, number>();
  server.interfere = ({ name }) => {
    const times = (seen.get(name) ?? 0) + 1;
    seen.set(name, times);
    if (times === 1) return "drop";
    return times === 2 ? { status: 503, headers: { "retry-after": "0" } } : undefined;
  };
  const worker = work(server);
  await server.until((one) => one.named("complete").length === 3);
  const keys = server
    .named("next")
    .slice(0, 3)
    .map((call) => call.headers["idempotency-key"]);
  await worker.stop();
  // The same key on each attempt: a lease that was granted while the response was lost is the same lease.
  expect(new Set(keys).size).toBe(1);
  expect(server.named("fail")).toEqual([]);
  expect(server.stored.has(`${PREFIX}master.m3u8`)).toBe(true);
});

test("a claim has the same key until it is answered, so that no lease is lost with a server that is killed", async () => {
  await using server = await ContractServer.start(source);
  // More than a client retries by itself.
  const LOST = 7;
  const keys: unknown[] = [];
  server.interfere = ({ name, body, headers }) => {
    if (name !== "next" || body.lane !== "main") return undefined;
    return keys.push(headers["idempotency-key"]) <= LOST ? "drop" : undefined;
  };
  const worker = work(server);
  await server.until(() => keys.length === LOST + 2);
  await worker.stop();
  expect(new Set(keys.slice(0, LOST + 1)).size).toBe(1);
  expect(keys.at(-1)).not.toBe(keys[0]);
});

test("once is one job, or none when none is queued", async () => {
  await using server = await ContractServer.start(source);
  server.queue = 2;
  expect(await work(server, { isOnce: true }).done).toBe("completed");
  expect(server.queue).toBe(1);
  // A server without support for it gets none, and everything else as before.
  server.encodingSpec = { storyboard: { enabled: false } };
  expect(await work(server, { isOnce: true }).done).toBe("completed");
  const idle = work(server, { isOnce: true });
  expect(await idle.done).toBeNull();
  expect(server.named("complete").map(({ body }) => body.storyboard_path)).toEqual([`${PREFIX}storyboard.vtt`, null]);
  expect(server.named("next").map(({ body }) => body.wait_seconds)).toEqual([0, 0, 0]);
  expectTidy(idle.scratchDir);
});

test("each stage is a line of the log, with its duration", async () => {
  await using server = await ContractServer.start(source);
  const worker = work(server, { isOnce: true });
  await worker.done;
  const stages = worker.lines.flatMap((line) => /^Stage completed\. (.*)$/.exec(line)?.[1] ?? []);
  expect(stages.map((line) => JSON.parse(line).stage)).toEqual(["downloading", "probing", "encoding", "publishing"]);
  for (const line of stages) expect(JSON.parse(line)).toMatchObject({ job_id: 7, took_ms: expect.any(Number) });
});

test("a job whose source does not fit on the disk is released, uncounted", async () => {
  await using server = await ContractServer.start(source);
  const contract = await server.contract({});
  server.interfere = ({ name }) =>
    name === "next" && server.queue-- > 0
      ? { status: 200, body: { ...contract, source: { ...contract.source, bytes: 1e15 } } }
      : undefined;
  const worker = work(server, { isOnce: true });
  expect(await worker.done).toBe("no_room");
  expect(server.calls.map(({ name }) => name)).toEqual(["next", "release"]);
  expectTidy(worker.scratchDir);
});

test("a job fails for lack of space when its disk reaches the reserve during the encode, and no other is claimed", async (context) => {
  const disk = smallDisk(context, 256);
  await using server = await ContractServer.start(middling);
  const worker = work(server, { scratchDir: join(disk.path, "scratch"), minFreeBytes: 32 * 2 ** 20 });
  await server.until((one) => one.named("heartbeat").some(({ body }) => body.stage === "encoding"));
  disk.fill();
  await server.until((one) => one.named("fail").length > 0);
  expect(server.named("fail")[0]?.body).toMatchObject({ code: "out_of_space", retryable: true });
  expect(server.named("complete")).toEqual([]);
  await vi.waitFor(() => expect(worker.lines.join("\n")).toContain("Almost no disk space is left"), 10_000);
  await worker.stop();
  expect(server.named("next")).toHaveLength(1);
});

test.each(rows(["vaapi", "nvenc", "qsv"] as const, 1))(
  "%s that does not work is reported before any job is claimed",
  async (encoder) => {
    await using server = await ContractServer.start(source);
    for (const tools of [binaries, { ffmpeg: "ffmpeg", ffprobe: "ffprobe" }])
      await expect(work(server, { encoder, binaries: tools }).done).rejects.toThrow(
        new RegExp(`^VODBOX_ENCODER=${encoder} does not work on this machine: .+VODBOX_FFMPEG`),
      );
    expect(server.calls).toEqual([]);
  },
);

test("a source that is not media fails for good, and the next job is claimed", async () => {
  const bad = join(folder, "bad.mp4");
  writeFileSync(bad, "no media at all");
  await using server = await ContractServer.start(bad);
  const worker = work(server);
  await server.until((one) => one.named("fail").length > 0 && one.named("next").length > 1);
  await worker.stop();
  const [fail] = server.named("fail");
  expect(fail?.body).toMatchObject({ code: "input_invalid", retryable: false });
  expect(String(fail?.body.log_tail)).not.toContain(folder);
  expect(server.named("next").length).toBeGreaterThan(1);
  expectTidy(worker.scratchDir);
});

test("segments are uploaded during the encode, each once", async () => {
  await using server = await ContractServer.start(middling);
  const worker = work(server);
  await server.until((one) => one.named("complete").length > 0, 120_000);
  await worker.stop();
  const names = server.calls.map(({ name, body }) => (name === "heartbeat" ? `${name} ${body.stage}` : name));
  const lastEncoding = names.lastIndexOf("heartbeat encoding");
  const before = names.slice(0, lastEncoding).filter((name) => name === "put").length;
  expect(before).toBeGreaterThan(10);
  // Fifteen segments of two renditions, and the files that describe them.
  expect(names.filter((name) => name === "put").length - before).toBeLessThan(25);
  expect(server.named("put")).toHaveLength(server.stored.size);
  const bytes = [...server.stored.values()].reduce((sum, file) => sum + file.length, 0);
  expect(server.named("complete")[0]?.body.media).toMatchObject({ bytes });
});

test("a whole job publishes nothing before it is complete, also for a server that would allow it", async () => {
  await using server = await ContractServer.start(source);
  server.early = true;
  const worker = work(server);
  await server.until((one) => one.named("complete").length > 0, 120_000);
  await worker.stop();
  expect(server.named("publish")).toEqual([]);
});

const isEncoding = (server: ContractServer) =>
  server.named("heartbeat").some((call) => call.body.stage === "encoding" && Number(call.body.progress) > 5);

test("stopped, it releases the job, kills ffmpeg and cleans up", async () => {
  await using server = await ContractServer.start(longSource);
  const worker = work(server);
  await server.until(isEncoding);
  expect(processesWith(worker.scratchDir).length).toBeGreaterThan(0);
  await worker.stop();
  expect(server.named("release").length).toBe(1);
  expect([...server.named("complete"), ...server.named("fail")]).toEqual([]);
  expectTidy(worker.scratchDir);
});

test("stopped while idle, it exits immediately", async () => {
  await using server = await ContractServer.start(source);
  server.queue = 0;
  const isHeld = ({ body }: Call) => Number(body.wait_seconds) > 0;
  // The server holds a request for a job for 20 s, here without end.
  server.interfere = (call) => (call.name === "next" && isHeld(call) ? "hold" : undefined);
  const worker = work(server);
  await server.until((one) => one.named("next").some(isHeld));
  // The worker would wait for the response for more than 40 s.
  expect(await worker.stop()).toBeLessThan(30_000);
});

test.each(
  rows(
    [
      ["lost", { status: 409, body: { code: "stale_lease" } }],
      ["cancelled", { status: 200, body: { status: "canceled", cancel_requested: true } }],
    ],
    1,
  ),
)("a lease that is %s ends the encode without another call", async (_, answer) => {
  await using server = await ContractServer.start(longSource);
  server.interfere = (call) => (call.name === "heartbeat" && isEncoding(server) ? answer : undefined);
  const worker = work(server);
  // It requests the next job, so the last one has ended.
  await server.until((one) => one.named("next").length > 1);
  expect(processesWith(worker.scratchDir)).toEqual([]);
  await worker.stop();
  expect(["complete", "fail", "release"].flatMap((name) => server.named(name))).toEqual([]);
  expectTidy(worker.scratchDir);
});

test("a server that is unavailable during the encode does not lose the work", async () => {
  await using server = await ContractServer.start(source);
  server.interfere = (call) => (call.name === "heartbeat" ? "drop" : undefined);
  const worker = work(server);
  await server.until((one) => one.named("complete").length > 0);
  await worker.stop();
  expect(server.named("fail")).toEqual([]);
});

test("a wrong token ends the worker with the server's message", async () => {
  await using server = await ContractServer.start(source);
  const worker = work(server, { token: () => "wrong" });
  await expect(worker.done).rejects.toMatchObject({ name: "ServerRefused", status: 401 });
  expectTidy(worker.scratchDir);
});

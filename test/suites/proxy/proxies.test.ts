import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { next, readyAsset, uploaded } from "#test/support/flow.ts";
import { type RunningServer, tenantKey } from "#test/support/process.ts";
import {
  opened,
  PROXY_NAMES,
  type Proxying,
  type ProxyName,
  skipWithoutProxy,
  startBehind,
} from "#test/support/proxy.ts";

const MIB = 2 ** 20;
/** `BIG=1` uploads 5 GB instead, and prints the duration and everyone's peak memory. */
const BIG = process.env.BIG === "1";
const UPLOAD_BYTES = BIG ? 5 * 1024 * MIB : 64 * MIB;
const BEACONS = 3;

const filesBelow = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
/** Directories may be deleted while they are read. */
function bytesArrived(folder: string): number {
  try {
    return bytesBelow(folder);
  } catch {
    return 0;
  }
}
const bytesBelow = (folder: string) =>
  filesBelow(folder).reduce((sum, file) => sum + (statSync(file, { throwIfNoEntry: false })?.size ?? 0), 0);

/** A server behind a proxy, with a tenant and its API key. */
async function behind(name: ProxyName): Promise<{ server: RunningServer; proxy: Proxying; key: string }> {
  const env = { VODBOX_RATE_LIMIT_BEACON: `${BEACONS}/3600`, VODBOX_MIN_FREE_BYTES: "0" };
  const started = await startBehind(name, env);
  return { ...started, key: await tenantKey(started.server) };
}

type Behind = Awaited<ReturnType<typeof behind>>;

async function uploadsPassUnbuffered({ server, proxy, key }: Behind): Promise<void> {
  const { as } = server;
  const piece = randomBytes(MIB);
  const sum = createHash("sha256");
  for (let at = 0; at < UPLOAD_BYTES; at += MIB) sum.update(piece);
  const sha256 = sum.digest("hex");
  const session = await as(key).initiateUpload({ filename: "big.mp4", bytes_expected: UPLOAD_BYTES, sha256 });
  expect(session.body.upload_url).toMatch(`${server.base}/objects/`);
  const from = performance.now();
  const headers = { ...session.body.upload_headers, "content-length": UPLOAD_BYTES };
  const { sending, answer } = opened(session.body.upload_url, { method: "PUT", headers });
  const before = bytesBelow(server.dataDir);
  for (let at = 0; at < UPLOAD_BYTES; at += MIB) {
    // The data sent so far must have reached vodbox before the rest is sent: otherwise the test never continues.
    if (at === 32 * MIB) while (bytesArrived(server.dataDir) - before < 16 * MIB) await sleep(10);
    if (!sending.write(piece)) await once(sending, "drain");
  }
  expect(bytesBelow(proxy.temp)).toBeLessThan(MIB);
  sending.end();
  const put = await answer;
  expect(put.status, put.body.toString()).toBe(200);
  const seconds = (performance.now() - from) / 1000;
  const completed = await as(key).completeUpload(session.body.id, { bytes_received: UPLOAD_BYTES });
  expect(completed.status, completed.text).toBe(200);
  const download = await as(key).getDownload(session.body.asset_id);
  const read = createHash("sha256");
  const response = await fetch(download.body.url);
  for await (const chunk of response.body as AsyncIterable<Uint8Array>) read.update(chunk);
  expect(read.digest("hex")).toBe(sha256);
  if (BIG) {
    const most = [server.child.pid, ...childrenOf(proxy.child.pid)].map(peakMemory);
    process.stdout.write(`${UPLOAD_BYTES} bytes up in ${seconds.toFixed(1)} s; most memory of ${most.join(", ")}\n`);
  }
}

const childrenOf = (pid = 0): number[] => [
  pid,
  ...readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ").filter(Boolean).map(Number),
];
const peakMemory = (pid: number | undefined) =>
  `${readFileSync(`/proc/${pid}/comm`, "utf8").trim()}: ${/VmHWM:\s+(.*)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]}`;

/** An asset with signed playback, using only URLs from responses. */
async function mediaPlay({ server, key }: Behind): Promise<void> {
  const { asset } = await readyAsset(server, key, { playback_policy: "signed" });
  const playback = (await server.as(key).getPlayback(asset.id)).body;
  for (const field of ["hls_url", "dash_url", "thumbnail_url", "embed_url"] as const)
    expect(playback[field], field).toMatch(new RegExp(`^${server.base}/`));
  const master = await fetch(playback.hls_url);
  const low = new URL((await master.text()).split("\n").find((line) => /^[^#]/.test(line)) ?? "", master.url);
  const playlist = await fetch(low);
  const segment = new URL((await playlist.text()).split("\n").find((line) => /^[^#]/.test(line)) ?? "", low);
  const whole = await fetch(segment);
  expect([whole.status, whole.headers.get("accept-ranges"), await whole.text()]).toEqual([200, "bytes", "segment"]);
  const part = await fetch(segment, { headers: { range: "bytes=2-4" } });
  expect([part.status, part.headers.get("content-range"), await part.text()]).toEqual([206, "bytes 2-4/7", "gme"]);
  const beyond = await fetch(segment, { headers: { range: "bytes=7-" } });
  expect(beyond.status).toBe(416);
  await beyond.body?.cancel();
  const held = await fetch(segment, { headers: { "if-none-match": whole.headers.get("etag") ?? "" } });
  expect(held.status).toBe(304);
  expect((await fetch(playback.embed_url)).status).toBe(200);
  const refused = await fetch(playback.hls_url.replace(/\?.*/, "").replace(playback.token, "x"));
  expect(refused.status).toBe(403);
  await refused.body?.cancel();
}

async function waitingWorkersAreAnswered({ server, key }: Behind): Promise<void> {
  const waiting = next(server, "waits", { worker_id: "w", wait_seconds: 20 });
  const { job } = await uploaded(server, key);
  const claimed = await waiting;
  expect([claimed.status, claimed.body?.job.id]).toEqual([200, job.id]);
}

/** tus returns the upload's URL in Location. */
async function uploadLocationIsPublic({ server, key }: Behind): Promise<void> {
  const made = await server.call("POST", "/api/v1/uploads/tus", {
    key,
    headers: {
      "tus-resumable": "1.0.0",
      "upload-length": "3",
      "upload-metadata": `filename ${Buffer.from("a.mp4").toString("base64")}`,
    },
  });
  expect([made.status, made.headers.get("location")]).toEqual([
    201,
    expect.stringMatching(new RegExp(`^${server.base}/api/v1/uploads/tus/`)),
  ]);
}

async function clientsAreDistinguished({ server }: Behind): Promise<void> {
  const body = JSON.stringify({ asset_id: "vid_nothing", session_id: "s", event: "play" });
  const beacon = async (localAddress: string, more: Record<string, string> = {}) => {
    const headers = { "content-type": "application/json", ...more };
    const { sending, answer } = opened(`${server.base}/api/v1/playback_events`, {
      method: "POST",
      headers,
      localAddress,
    });
    sending.end(body);
    return (await answer).status;
  };
  const spoofs: Record<string, string>[] = [
    {},
    { "x-forwarded-for": "198.51.100.9" },
    { forwarded: "for=198.51.100.9" },
  ];
  for (const spoof of spoofs.slice(0, BEACONS)) expect(await beacon("127.0.0.2", spoof)).toBe(202);
  // A different host name does not change the client either.
  for (const spoof of spoofs) expect(await beacon("127.0.0.2", spoof)).toBe(429);
  expect(await beacon("127.0.0.3")).toBe(202);
}

test.for(PROXY_NAMES)(
  "behind %s uploads are streamed, media play, workers wait, clients are distinguished",
  {
    timeout: 900_000,
  },
  async (name, context) => {
    skipWithoutProxy(name, context);
    const all = await behind(name);
    await uploadsPassUnbuffered(all);
    await next(all.server);
    await waitingWorkersAreAnswered(all);
    await mediaPlay(all);
    await uploadLocationIsPublic(all);
    await clientsAreDistinguished(all);
    expect(existsSync(all.proxy.temp) && bytesBelow(all.proxy.temp)).toBeLessThan(MIB);
    all.proxy.child.kill("SIGTERM");
    await all.proxy.ended;
  },
);

import { setTimeout } from "node:timers/promises";
import { expect, test } from "vitest";
import { SEGMENT_HEAD } from "#src/lib/isobmff/write-fragment.ts";
import { descendantsOf, until } from "#test/support/descendants.ts";
import { type ParsedPlaylist, parseLivePlaylist } from "#test/support/hls-live-parser.ts";
import { LiveValidator } from "#test/support/hls-live-validator.ts";
import { complete, framesOf, get, playlistUrl, RENDITION_LIMIT_MS, textOf } from "#test/support/live/live-client.ts";
import { type LiveServer, liveServer, newChannel, publish } from "#test/support/live.ts";
import { LiveManifestValidator, type ParsedManifest, parseLiveManifest } from "#test/support/live-manifest.ts";
import { nightly } from "#test/support/nightly.ts";
import { stopCleanly } from "#test/support/process.ts";

/** Renditions that a worker encodes while a stream runs. */

const SIZE = "640x360";

const workersOf = ({ child }: LiveServer) =>
  descendantsOf(child.pid as number).filter(({ command }) => / worker --server /.test(command));

test("viewers may choose a rendition with the same frames, also after its worker was killed", async () => {
  const server = await liveServer({ workers: 1 });
  const channel = await newChannel(server, { encoding_profile: "default" });
  const publishing = publish(server, channel, 300, { size: SIZE });
  const small = await until("the rendition is listed", () => playlistUrl(server, "240p"), RENDITION_LIMIT_MS);
  const source = (await playlistUrl(server, "360p")) as string;
  const manifests = watchManifest(server);
  const { key, id } = channel;
  const { body } = await server.as(key).getChannelPlayback(id);
  expect(body.renditions.map(({ name, height }: { name: string; height: number }) => [name, height])).toEqual([
    ...[
      ["360p", 360],
      ["240p", 240],
    ],
  ]);

  // With low latency: each playlist is requested when the next part is there.
  const validator = new LiveValidator();
  let read = parseLivePlaylist(await textOf(small));
  for (let part = 0; part < 8; part++) {
    const [number, index] = (read.hint as string).split(".").map(Number);
    const text = await textOf(`${small}?_HLS_msn=${number}&_HLS_part=${index}`);
    expect(validator.see(text)).toEqual([]);
    read = parseLivePlaylist(text);
  }
  const names = await until(
    "three segments are complete",
    async () => {
      const found = complete(parseLivePlaylist(await textOf(small))).map((segment) => segment.complete?.uri as string);
      return found.length >= 3 ? found.slice(-3) : null;
    },
    RENDITION_LIMIT_MS,
  );
  expect(await framesOf(small, names)).toEqual(await framesOf(source, names));
  read = parseLivePlaylist(await textOf(small));
  const dates = (playlist: ParsedPlaylist) => new Map(playlist.segments.map(({ number, date }) => [number, date]));
  const ofSource = dates(parseLivePlaylist(await textOf(source)));
  for (const [number, date] of dates(read)) expect(date).toBe(ofSource.get(number));
  const last = complete(read).at(-1);
  const whole = await get(new URL(last?.complete?.uri as string, small).href);
  const parts = await Promise.all((last?.parts ?? []).map(({ uri }) => get(new URL(uri, small).href)));
  expect(parts.length).toBe(4);
  expect(Buffer.concat(parts.map(({ bytes }) => bytes)).equals(whole.bytes.subarray(SEGMENT_HEAD.length))).toBe(true);

  const killed = workersOf(server);
  expect(killed.length).toBe(1);
  for (const { pid } of killed) process.kill(pid, "SIGKILL");
  await until("the rendition is not listed", async () => (await playlistUrl(server, "240p")) === null);
  expect(await playlistUrl(server, "360p")).toBe(source);
  const gap = await until("what it lacks is a gap", async () =>
    parseLivePlaylist(await textOf(small)).segments.find(({ isGap }) => isGap),
  );
  expect((await get(new URL(gap.complete?.uri as string, small).href)).status).toBe(404);
  await until(
    "another worker continues",
    async () => (await playlistUrl(server, "240p")) === small,
    RENDITION_LIMIT_MS,
  );
  const after = parseLivePlaylist(await textOf(small));
  const [first] = complete(after).filter(({ number }) => number > gap.number);
  const name = first?.complete?.uri as string;
  expect(await framesOf(small, [name])).toEqual(await framesOf(source, [name]));
  expect(parseLivePlaylist(await textOf(source)).segments.some(({ isGap }) => isGap)).toBe(false);

  await until("the manifest lists it again", () => manifests.has("240p"), RENDITION_LIMIT_MS);
  publishing.child.kill("SIGINT");
  await until("the playlist has ended", async () => parseLivePlaylist(await textOf(small)).isEnded);
  const manifest = await manifests.end();
  const listed = manifest.periods.map(({ representations }) => representations.map((one) => one.id).join(" "));
  // The last second is only in the publisher's video.
  expect(listed.slice(-5)).toEqual(["360p audio", "360p 240p audio", "360p audio", "360p 240p audio", "360p audio"]);
  const assets = async () => (await server.as(key).listAssets()).body;
  await until("the recording is an asset", async () => (await assets()).length === 1);
  expect((await assets())[0].playback_status).toBe("ready");
});

/** How often the DASH manifest is read: like a player, which gets no signal when it changes. */
const READ_MS = 500;

/** Reads the DASH manifest as players do; each must follow from the one before it. */
function watchManifest({ base }: Pick<LiveServer, "base">) {
  const validator = new LiveManifestValidator();
  const faults: string[] = [];
  let manifest: ParsedManifest | null = null;
  const loop = (async () => {
    const first = `${base}/live/stage/manifest.mpd`;
    const url = parseLiveManifest(await textOf(first), first).location as string;
    while (manifest?.attributes.type !== "static") {
      const text = await textOf(url);
      faults.push(...validator.see(text, url));
      manifest = parseLiveManifest(text, url);
      await setTimeout(READ_MS);
    }
    return manifest;
  })();
  return {
    /** Whether players that begin now have the track. */
    has: (track: string) => manifest?.periods.at(-1)?.representations.some(({ id }) => id === track) ?? false,
    /** The last one, of the stream that has ended. */
    async end(): Promise<ParsedManifest> {
      const last = await loop;
      expect(faults).toEqual([]);
      return last;
    },
  };
}

test("whatever a worker sends, the stream continues, and is offered again", async () => {
  const server = await liveServer();
  const channel = await newChannel(server, { encoding_profile: "default" });
  publish(server, channel, 300, { size: SIZE });
  const base = "/api/v1/worker/live";
  const { worker } = server;
  const lease = async () => {
    const claim = { worker, body: { wait_seconds: 20 } };
    return (await until("it is offered", async () => (await server.call("POST", `${base}/next`, claim)).body)) ?? null;
  };
  expect((await server.as().claimLiveEncode({})).status).toBe(401);
  const send = (url: string, token: string, init: RequestInit = {}) =>
    fetch(url, { ...init, headers: { "x-svc-worker-token": worker, "x-svc-job-lease-token": token } });

  const first = await lease();
  expect(first).toMatchObject({ channel: "stage", renditions: [{ name: "240p", width: 426, height: 240 }] });
  expect((await server.as({ worker }).claimLiveEncode({})).status).toBe(204);
  expect((await send(first.input_url, "another")).status).toBe(409);
  const input = await send(first.input_url, first.lease_token);
  expect([input.status, input.headers.get("content-type")]).toEqual([200, "video/mp4"]);
  const reader = (input.body as ReadableStream<Uint8Array>).getReader();
  expect(Buffer.from((await reader.read()).value as Uint8Array).toString("latin1", 4, 8)).toBe("ftyp");
  expect((await send(first.input_url, first.lease_token)).status).toBe(409);
  const garbage = [
    Buffer.from("not a file of media at all, whatever comes next"),
    Buffer.from("000000106d6f6f660000000874726166", "hex"),
  ];
  let leased = first;
  for (const body of garbage) {
    const response = await send(leased.output_url, leased.lease_token, { method: "POST", body }).catch(() => null);
    if (response) expect(response.status).toBe(409);
    expect((await send(leased.output_url, leased.lease_token, { method: "POST", body })).status).toBe(409);
    leased = await lease();
  }
  // The server may have closed it, with the lease that it belonged to.
  await reader.cancel().catch(() => {});
  const source = parseLivePlaylist(await textOf((await playlistUrl(server, "360p")) as string));
  expect(source.segments.some(({ isGap }) => isGap)).toBe(false);
  expect(await playlistUrl(server, "240p")).toBe(null);
});

nightly("every process of a server serves the renditions, whichever its workers reach", async () => {
  const server = await liveServer({ workers: 1, env: { VODBOX_PROCESSES: "3" } });
  const channel = await newChannel(server, { encoding_profile: "default" });
  publish(server, channel, 300, { size: SIZE });
  // Each request has a connection of its own, which the system gives to one of the processes.
  const text = async (url: string) => (await fetch(url, { headers: { connection: "close" } })).text();
  const master = `${server.base}/live/stage/master.m3u8`;
  const all = (url: string) => Promise.all(Array.from({ length: 12 }, () => text(url)));
  await until(
    "all list it",
    async () => (await all(master)).every((one) => one.includes("/240p/")),
    RENDITION_LIMIT_MS,
  );
  const small = (await playlistUrl(server, "240p")) as string;
  const later = async (than: number) => {
    const lists = (await all(small)).map((one) => complete(parseLivePlaylist(one)).at(-1)?.number ?? 0);
    return Math.min(...lists) > than ? Math.max(...lists) : null;
  };
  const reached = await until("all have a segment", () => later(0));
  await until("all have later ones", () => later(reached));
  await stopCleanly(server);
});

import { beforeAll, beforeEach, expect, test } from "vitest";
import { joinAudio } from "#features/clips/join-audio.ts";
import { fitted } from "#features/transcoding/added-audio/fit.ts";
import { type Stretch, segmentsOf, spliceTrack } from "#features/transcoding/added-audio/splice.ts";
import { segmentFile } from "#features/transcoding/added-audio/verify.ts";
import { readInit } from "#lib/isobmff";
import { readDefaults, readSamples } from "#media/clip/fragments.ts";
import type { App } from "#src/app.ts";
import { type AddedAudioMedia, type AssetRow, assets, audioTracks } from "#storage/db/schema.ts";
import type { ObjectStore } from "#storage/objects/store.ts";
import { type TestApp, testApp } from "#test/support/app.ts";
import { film, filmAsset, SECONDS } from "#test/support/clips.ts";

/** What the server writes for added tracks is bounded, whatever workers delivered and however long silence is to be. */
let server: TestApp;
let app: App;
let objects: ObjectStore;
let tenantId: number;
let key: string;
let files: Awaited<ReturnType<typeof film>>;
let media: AddedAudioMedia;
let prefix: string;
let count = 0;
beforeAll(async () => {
  server = await testApp({ rate_limit_uploads: "10000/60" });
  ({ app } = server.opened);
  objects = app.objects as ObjectStore;
  tenantId = (await server.tenant()).id;
  key = await server.key(tenantId);
  files = await film();
  return server.close;
});

const file = (name: string) => Buffer.from(files[name] as Uint8Array);
beforeEach(async () => {
  prefix = `tenants/${tenantId}/spliced/${++count}/`;
  const names = Object.keys(files)
    .filter((name) => /^audio\/\d+\.m4s$/.test(name))
    .sort();
  const { timescale } = readInit(file("audio/init.mp4"));
  const segments = names.map((name): [number, number, number] => {
    const samples = readSamples(file(name), readDefaults(file("audio/init.mp4")));
    return [samples[0]?.dts ?? 0, samples.reduce((sum, { duration }) => sum + duration, 0), 0];
  });
  media = { codec: "mp4a.40.2", bandwidth: 96_000, channels: 2, timescale, segments };
  for (const name of [...names, "audio/init.mp4"]) await objects.put(prefix + name, file(name));
});

const audio = (): Stretch["audio"] => ({ prefix, media, start: 0 });
const splice = (stretches: readonly Stretch[], signal = new AbortController().signal, store = objects) =>
  spliceTrack(app, store, { tenantId, stretches, signal });

test("a join whose added tracks would be silent for a day is refused before anything is written", async () => {
  const assetOf = async (): Promise<AssetRow> => {
    const { id } = await filmAsset(server, key, files);
    return (await app.db.select().from(assets).all()).find((one) => one.id === id) as AssetRow;
  };
  const [plain, dubbed] = [await assetOf(), await assetOf()];
  const now = app.clock.now();
  const label = { tenantId, assetId: dubbed.id, role: "dub", status: "ready", createdAt: now, updatedAt: now } as const;
  await app.write(async (tx) => {
    for (const name of ["One", "Two"]) await tx.insert(audioTracks).values({ ...label, name, prefix, media });
  });
  const parts = (silent: number) => [
    { asset: plain, from: 0, to: silent },
    { asset: dubbed, from: silent, to: silent + SECONDS },
  ];
  const impossible = (reason: string): never => {
    throw new Error(reason);
  };
  const join = (silent: number) =>
    joinAudio(app, objects, parts(silent), { signal: new AbortController().signal, impossible });
  await expect(join(50_000)).rejects.toThrow("too many segments");
  expect((await join(20)).tracks).toHaveLength(2);
});

test("a track that would be silent for over a day is not fitted", async () => {
  const signal = new AbortController().signal;
  expect(await fitted(app, { tenantId, prefix, media }, { durationSeconds: 90_000, signal })).toBeNull();
});

test("silence is not written any more when the request has ended", async () => {
  const request = new AbortController();
  let puts = 0;
  const store: ObjectStore = Object.assign(Object.create(objects), {
    async put(...args: Parameters<ObjectStore["put"]>) {
      if (++puts === 3) request.abort();
      return objects.put(...args);
    },
  });
  const stretches = [
    { from: 0, to: SECONDS, audio: audio() },
    { from: SECONDS, to: 2000, audio: null },
  ];
  await expect(splice(stretches, request.signal, store)).rejects.toThrow("abort");
  expect(puts).toBeLessThan(50);
});

test("segments of silence, which are equal, are one row of the manifest", async () => {
  const made = await splice([
    { from: 0, to: SECONDS, audio: audio() },
    { from: SECONDS, to: 400, audio: null },
  ]);
  expect(segmentsOf(made.media)).toBeGreaterThan(90);
  expect(made.media.segments.length).toBeLessThan(15);
  let end = 0;
  for (const [start, duration, repeat] of made.media.segments) {
    expect(start).toBe(end);
    end = start + duration * (repeat + 1);
  }
  expect(end / made.media.timescale).toBeCloseTo(400, 1);
});

test("a segment whose time is far after its part is left out, and silence ends with the part", async () => {
  const damaged = file(segmentFile(3));
  const at = damaged.indexOf("tfdt") + 4;
  if (damaged[at] === 1) damaged.writeBigUInt64BE(2n ** 45n, at + 4);
  else damaged.writeUInt32BE(2 ** 32 - 1, at + 4);
  await objects.put(prefix + segmentFile(3), damaged);
  const made = await splice([
    { from: 0, to: SECONDS, audio: audio() },
    { from: SECONDS, to: SECONDS + 4, audio: { ...audio(), start: 0 } as Stretch["audio"] },
  ]);
  const [start, duration, repeat] = made.media.segments.at(-1) as [number, number, number];
  expect((start + duration * (repeat + 1)) / made.media.timescale).toBeCloseTo(SECONDS + 4, 1);
});

test("a track cannot be joined when its clock is too fast, or not that of its manifest", async () => {
  const stretches = () => [
    { from: 0, to: 4, audio: null },
    { from: 4, to: SECONDS, audio: audio() },
  ];
  media = { ...media, timescale: 44_100 };
  await expect(splice(stretches())).rejects.toThrow("clock");
  const init = file("audio/init.mp4");
  const at = init.indexOf("mdhd") + 4;
  init.writeUInt32BE(2 ** 32 - 1, at + (init[at] === 1 ? 20 : 12));
  await objects.put(`${prefix}audio/init.mp4`, init);
  media = { ...media, timescale: 2 ** 32 - 1 };
  await expect(splice(stretches())).rejects.toThrow("clock");
});

test("a track of media that began at a small offset is not placed later next to media at 0; that of a trim is", async () => {
  const first = async (durationSeconds: number) => {
    const signal = new AbortController().signal;
    const made = await fitted(
      app,
      { tenantId, prefix, media: { ...media, startSeconds: 0.2 } },
      { durationSeconds, signal },
    );
    const { body } = (await objects.get(`${made?.prefix}${segmentFile(1)}`)) ?? {};
    const data = Buffer.concat((await body?.toArray()) ?? []);
    return readSamples(data, readDefaults(file("audio/init.mp4")))[3]?.data.length ?? 0;
  };
  const packaged = await first(SECONDS - 0.2);
  expect(packaged).toBeGreaterThan(40);
  expect(await first(SECONDS)).toBeLessThan(40);
});

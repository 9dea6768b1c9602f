import { beforeAll, expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import { workOnce } from "#test/support/clip-worker.ts";
import { createClip, downloaded, encodedAgain, FPS, film, filmAsset } from "#test/support/clips.ts";
import { beepsOf, flashesOf } from "#test/support/media/beeps.ts";
import { areNear, marked, markedAudio, markedFile, marksIn } from "#test/support/media/marks.ts";
import { presented } from "#test/support/media/presented.ts";
import { fast } from "#test/support/media/sources.ts";

/** Added tracks are heard when the frames are seen to which they belong, also in what is cut: decoded, in HLS and in DASH. */
const SECONDS = 12;

let app: TestApp;
let key: string;
let files: Awaited<ReturnType<typeof film>>;
beforeAll(async () => {
  app = await testApp({ rate_limit_uploads: "10000/60" });
  key = await app.key((await app.tenant()).id);
  files = await film([...marked("64x36", FPS), ...markedAudio(0, SECONDS), ...fast, "-c:a", "aac"]);
  return app.close;
});

const read = async (url: string) => {
  const response = await app.opened.server.fetch(new Request(url));
  if (response.status !== 200) throw new Error(`${url}: ${response.status}`);
  return Buffer.from(await response.arrayBuffer());
};
const newFilm = () => filmAsset(app, key, files, { playback_policy: "public" }, SECONDS);

/** Adds a track that belongs to the material from `from` on. */
async function add(id: number, name: string, from: number, to = SECONDS): Promise<void> {
  const data = new FormData();
  data.append("language", "de");
  data.append("name", name);
  data.append("file", new Blob([new Uint8Array(await markedFile(from, to - from))]), "dub.wav");
  const { status, text } = await app.as(key).createAudioTrack(id, data);
  expect(status, text).toBe(201);
  expect(await workOnce(app)).toBe("completed");
}

async function clip(id: number, start_seconds: number, end_seconds: number, mode: "instant" | "exact") {
  const { status, text, body } = await createClip(app, key, id, { start_seconds, end_seconds, mode });
  expect(status, text).toBe(201);
  if (mode === "exact") expect(await workOnce(app)).toBe("completed");
  return body as { id: number };
}

const trim = (id: number, start_seconds: number, end_seconds: number, mode: "instant" | "exact") =>
  app.as(key).trimAsset(id, { start_seconds, end_seconds, mode });

type Heard = { marks: readonly number[]; tracks: readonly (readonly [name: string, marks: readonly number[]])[] };

/** The asset plays the material from `from` to `to`, with these added tracks. */
const expectInSync = (id: number, { from, to, tracks }: { from: number; to: number; tracks: readonly string[] }) =>
  expectMarks(id, { marks: marksIn(from, to), tracks: tracks.map((name) => [name, marksIn(from, to)]) });

/** When the flashes and beeps of an asset are, in HLS and in DASH. Its own audio is the first track, and complete. */
async function expectMarks(id: number, { marks, tracks: wanted }: Heard) {
  const { body: playback } = await app.as(key).getPlayback(id);
  const tracks = wanted.map(([name]) => name);
  const found: Record<string, readonly number[]> = {};
  const hls = await downloaded(app, playback.hls_url);
  found["HLS video"] = await flashesOf(hls, FPS);
  for (const [index, name] of ["own", ...tracks].entries()) found[`HLS ${name}`] = await beepsOf(hls, index);
  const video = await presented(playback.dash_url, read);
  const shift = (times: readonly number[], by: number) => times.map((at) => at + by);
  found["DASH video"] = shift(await flashesOf(video.file, FPS), video.start);
  for (const name of tracks) {
    const audio = await presented(playback.dash_url, read, name);
    found[`DASH ${name}`] = shift(await beepsOf(audio.file), audio.start);
  }
  const expected = new Map(
    wanted.flatMap(([name, times]) => [`HLS ${name}`, `DASH ${name}`].map((one) => [one, times])),
  );
  const off = Object.entries(found).filter(([name, times]) => !areNear(times, expected.get(name) ?? marks));
  expect(Object.fromEntries(off), `marks at ${marks.join(", ")}`).toEqual({});
}

test("a track that is added to an asset, to an instant clip of it, and to an exact clip of that, is in sync", async () => {
  const { id } = await newFilm();
  await add(id, "One", 0);
  const instant = await clip(id, 4, 12, "instant");
  await add(instant.id, "Two", 4);
  await expectInSync(instant.id, { from: 4, to: 12, tracks: ["One", "Two"] });
  const exact = await clip(instant.id, 1.2, 7.6, "exact");
  await add(exact.id, "Three", 5.2, 11.6);
  await expectInSync(exact.id, { from: 5.2, to: 11.6, tracks: ["One", "Two", "Three"] });
});

test("an asset that is trimmed exactly, and then at once, keeps its tracks in sync, and those added between", async () => {
  const { id } = await newFilm();
  await add(id, "One", 0);
  await add(id, "Gone", 0);
  expect((await trim(id, 1.2, 11.2, "exact")).status).toBe(202);
  const gone = (await app.as(key).listAudioTracks(id)).body.at(-1);
  expect((await app.as(key).deleteAudioTrack(id, gone?.id)).status).toBe(204);
  expect(await workOnce(app)).toBe("completed");
  await add(id, "Two", 1.2, 11.2);
  expect((await trim(id, 2.8, 10, "instant")).status).toBe(200);
  await expectInSync(id, { from: 4, to: 11.2, tracks: ["One", "Two"] });
  // The trim did not change its source.
  await encodedAgain(app, key, id, files, SECONDS);
  const kept = marksIn(0, SECONDS).filter((at) => at >= 4 && at < 11.2);
  await expectMarks(id, { marks: marksIn(0, SECONDS), tracks: ["One", "Two"].map((name) => [name, kept]) });
});

test("a join has the tracks of its parts at their places, also those of clips, and silence where a part has none", async () => {
  const dubbed = await newFilm();
  await add(dubbed.id, "One", 0);
  const plain = await newFilm();
  const cut = await clip(dubbed.id, 3.32, 9.84, "exact");
  const asset_ids = [cut, plain, dubbed, cut].map(({ id }) => id);
  const { status, text, body } = await app.as(key).joinAssets({ asset_ids });
  expect(status, text).toBe(201);
  // Its media are its own by now.
  const track = (await app.as(key).listAudioTracks(cut.id)).body.at(-1);
  await app.as(key).updateAudioTrack(cut.id, track?.id, { name: "Renamed" });
  expect(await workOnce(app)).toBe("completed");
  for (const { id } of [cut, plain, dubbed]) expect((await app.as(key).deleteAsset(id)).status).toBe(204);
  app.advance(2 * 3_600_000);
  await app.runTask("sweep-objects");
  const length = 6.52;
  const at = (from: number, marks: number[]) => marks.map((mark) => mark + from);
  const [first, whole] = [marksIn(3.32, 9.84), marksIn(0, SECONDS)];
  const last = at(length + 2 * SECONDS, first);
  const heard = [...first, ...at(length + SECONDS, whole), ...last];
  const seen = [...first, ...at(length, whole), ...at(length + SECONDS, whole), ...last];
  await expectMarks(body.id, { marks: seen, tracks: [["One", heard]] });
});

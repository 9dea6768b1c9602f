import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import { workOnce } from "#test/support/clip-worker.ts";
import { createClip } from "#test/support/clips.ts";
import { expectError } from "#test/support/error.ts";
import { uploaded } from "#test/support/flow.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { beepsOf, flashesOf } from "#test/support/media/beeps.ts";
import { areNear, marked, markedAudio, markedFile, marksIn } from "#test/support/media/marks.ts";
import { fast, ffmpeg } from "#test/support/media/sources.ts";

/** Files for players without HLS have the audio that players begin with: really encoded, decoded again. */
const SECONDS = 6;
const FPS = 25;
/** The dub has its beeps earlier than the audio of the source. */
const EARLIER = 0.52;

let app: TestApp;
let key: string;
beforeAll(async () => {
  app = await testApp({ rate_limit_uploads: "10000/60", static_mp4: true });
  const tenant = await app.tenant();
  key = await app.key(tenant.id);
  const body = { player: { allow_download: true } };
  const { status } = await app.as({ admin: app.admin }).updateTenant(tenant.slug, body);
  expect(status).toBe(200);
  return app.close;
});

async function encoded(...audio: string[]): Promise<{ id: number; external_id: string }> {
  const path = join(emptyFolder(), "source.mp4");
  await ffmpeg(...marked("64x36", FPS, SECONDS), ...audio, ...fast, path);
  const { asset } = await uploaded(app, key, { bytes: readFileSync(path), playback_policy: "public" });
  while ((await workOnce(app)) !== null);
  const { body } = await app.as(key).getAsset(asset.id);
  expect(body.playback_status, JSON.stringify(body.error)).toBe("ready");
  return body;
}

async function add(id: number, from: number): Promise<{ id: number }> {
  const data = new FormData();
  for (const [name, value] of Object.entries({ language: "de", name: "Dub" })) data.append(name, value);
  data.append("file", new Blob([new Uint8Array(await markedFile(from, SECONDS))]), "dub.wav");
  const { status, text, body } = await app.as(key).createAudioTrack(id, data);
  expect(status, text).toBe(201);
  expect(await workOnce(app)).toBe("completed");
  return body;
}

type Read = { status: number; bytes: Buffer; disposition: string | null };
async function read(url: string): Promise<Read> {
  const response = await app.opened.server.fetch(new Request(url));
  if (response.status === 302) return read(response.headers.get("location") as string);
  const bytes = Buffer.from(await response.arrayBuffer());
  return { status: response.status, bytes, disposition: response.headers.get("content-disposition") };
}

/** The file has all flashes, and beeps that are so many seconds earlier than these. */
async function expectHeard({ status, bytes }: Read, earlier: number, name = "the file") {
  expect(status, name).toBe(200);
  const file = join(emptyFolder(), "plain.mp4");
  writeFileSync(file, bytes);
  const marks = marksIn(0, SECONDS);
  const heard = await beepsOf(file);
  const seen = await flashesOf(file, FPS);
  const expected = marks.map((at) => at - earlier);
  expect([areNear(heard, expected), areNear(seen, marks)], `${name}: ${heard} heard, ${seen} seen`).toEqual([
    true,
    true,
  ]);
}

/** The audio tracks of an asset that a job has completed. */
async function tracksOf(id: number): Promise<{ source: string }[]> {
  expect(await workOnce(app)).toBe("completed");
  return (await app.as(key).listAudioTracks(id)).body;
}

test("the MP4 file and downloads have the default track, whichever that is", async () => {
  const asset = await encoded(...markedAudio(0, SECONDS));
  const mp4 = `http://vodbox.test/media/${asset.external_id}/video.mp4`;
  const stored = await read(mp4);
  await expectHeard(stored, 0);
  const dub = await add(asset.id, EARLIER);
  expect((await read(mp4)).bytes.equals(stored.bytes)).toBe(true);
  const choose = (id: number) => app.as(key).updateAudioTrack(asset.id, id, { is_default: true });
  expect((await choose(dub.id)).status).toBe(200);
  await expectHeard(await read(mp4), EARLIER);
  const [own] = (await app.as(key).listAudioTracks(asset.id)).body;
  expect((await choose(own.id)).status).toBe(200);
  expect((await read(mp4)).bytes.equals(stored.bytes)).toBe(true);
  const { body: clip } = await createClip(app, key, asset.id, { start_seconds: 0, end_seconds: SECONDS });
  // What was removed is in no file any more.
  expect((await app.as(key).deleteAudioTrack(asset.id, own.id)).status).toBe(204);
  await expectHeard(await read(mp4), EARLIER);
  const download = await read(`http://vodbox.test/embed/${asset.external_id}/download`);
  await expectHeard(download, EARLIER);
  expect(download.disposition).toMatch(/^attachment/);
  const join = (...asset_ids: number[]) => app.as(key).joinAssets({ asset_ids });
  const joined = await join(asset.id, asset.id);
  expect((await tracksOf(joined.body.id)).map(({ source }) => source)).toEqual(["upload"]);
  // Its audio would be heard again in one part.
  expectError(await join(asset.id, clip.id), 422, "join_not_possible");
});

test("files of a video without audio of its own have the track that was added", async () => {
  const asset = await encoded();
  await add(asset.id, 0);
  const body = { name: "highest" };
  expect((await app.as(key).createStaticRendition(asset.id, body)).status).toBe(201);
  for (const file of ["static/highest.mp4", "video.mp4"])
    await expectHeard(await read(`http://vodbox.test/media/${asset.external_id}/${file}`), 0, file);
});

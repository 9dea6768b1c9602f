import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { readXml } from "#src/lib/xml/index.ts";
import { type TestApp, testApp } from "#test/support/app.ts";
import { workOnce } from "#test/support/clip-worker.ts";
import { createClip } from "#test/support/clips.ts";
import { uploaded } from "#test/support/flow.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { marked, markedAudio, markedFile } from "#test/support/media/marks.ts";
import { fast, ffmpeg } from "#test/support/media/sources.ts";
import { muxClient } from "#test/support/mux/client.ts";

/** Sizes that the API, Mux's API and feeds say, and what downloads deliver. */
const SECONDS = 5;
const NAMES = ["highest", "audio-only", "capped-1080p", "low", "360p", "1080p"];

let app: TestApp;
let dataDir: string;
let key: string;
let collection: { id: number; feed_url: string };
beforeAll(async () => {
  app = await testApp({ rate_limit_uploads: "10000/60" });
  dataDir = app.opened.app.config.data_dir;
  const tenant = await app.tenant();
  key = await app.key(tenant.id);
  const body = { tenant_id: tenant.id, collection: { name: "Films", slug: "films" } };
  const { id } = (await app.as(key).createCollection(body)).body;
  ({ body: collection } = await app.as(key).unchecked.updateCollection(id, { is_public: true }));
  return () => app.close();
});

type Asset = { id: number; external_id: string };
const read = async (id: number): Promise<Asset> => (await app.as(key).getAsset(id)).body;

async function encoded(source: string[], fields: Record<string, unknown> = {}): Promise<Asset> {
  const path = join(emptyFolder(), "source.mp4");
  await ffmpeg(...source, ...fast, path);
  const bytes = readFileSync(path);
  const common = { bytes, playback_policy: "public", collection_id: collection.id };
  const { asset } = await uploaded(app, key, { ...common, ...fields });
  while ((await workOnce(app)) !== null);
  return read(asset.id);
}

async function addNames({ id }: Asset): Promise<void> {
  for (const name of NAMES) {
    const made = await app.as(key).createStaticRendition(id, { name });
    expect(made.status, made.text).toBe(201);
    await expectDelivered(made.body);
  }
}

/** HEAD and GET have as many bytes as the record says, and both are 404 where it says none. */
async function expectDelivered({ name, url, bytes, status }: { [field: string]: any }): Promise<void> {
  if (bytes === null) expect(status, name).toBe("skipped");
  const expected = bytes === null ? [404, null] : [200, bytes];
  expect([name, ...(await sizeOf(url))]).toEqual([name, ...expected]);
}

/** The status of a download, and its size; null for an error. */
async function sizeOf(url: string): Promise<[number, number | null]> {
  const fetched = (method: string) => app.opened.server.fetch(new Request(url, { method }));
  const head = await fetched("HEAD");
  const whole = await fetched("GET");
  const { byteLength } = await whole.arrayBuffer();
  expect(head.status).toBe(whole.status);
  if (!whole.ok) return [whole.status, null];
  expect([head, whole].map(({ headers }) => headers.get("content-length"))).toEqual(Array(2).fill(String(byteLength)));
  return [whole.status, byteLength];
}

/** Everything that says a size of a file of the asset says the right one; resolves with the sizes by name. */
async function expectTrue({ id, external_id }: Asset): Promise<Record<string, number | null>> {
  const { body: all } = await app.as(key).listStaticRenditions(id);
  for (const one of all) await expectDelivered(one);
  const sizes = Object.fromEntries(all.map(({ name, bytes }) => [name, bytes]));
  const mux = muxClient(app, key);
  const files = (await mux.video.assets.retrieve(String(id))).static_renditions?.files ?? [];
  expect(files.length).toBeGreaterThan(0);
  for (const { name, filesize, status } of files) {
    const [code, bytes] = await sizeOf(`http://vodbox.test/mux/stream/${external_id}/${name}`);
    const expected = code === 200 ? String(bytes) : undefined;
    expect([name, status, filesize]).toEqual([name, status, expected]);
  }
  const { text } = await app.call("GET", collection.feed_url);
  const items = readXml(text).children[0]?.children.filter(({ name }) => name === "item") ?? [];
  const own = items.find((item) => item.children.some(({ name, text }) => name === "guid" && text === external_id));
  const enclosure = own?.children.find(({ name }) => name === "enclosure")?.attributes;
  if (enclosure?.get("type") === "video/mp4")
    expect(await sizeOf(enclosure.get("url") as string)).toEqual([200, Number(enclosure.get("length"))]);
  return sizes;
}

async function addDub({ id }: Asset): Promise<{ id: number }> {
  const data = new FormData();
  for (const [name, value] of Object.entries({ language: "de", name: "Dub" })) data.append(name, value);
  data.append("file", new Blob([new Uint8Array(await markedFile(0.5, SECONDS))]), "dub.wav");
  const added = await app.as(key).createAudioTrack(id, data);
  expect(added.status, added.text).toBe(201);
  expect(await workOnce(app)).toBe("completed");
  const body = { is_default: true };
  expect((await app.as(key).updateAudioTrack(id, added.body.id, body)).status).toBe(200);
  return added.body;
}

const audio = markedAudio(0, SECONDS);

describe("the size of a file", () => {
  test.each([
    ["video with audio", [...marked("640x360", 25, SECONDS), ...audio]],
    ["portrait video without audio", marked("180x320", 25, SECONDS)],
    ["audio", audio],
    ["two languages", [...marked("96x54", 25, SECONDS), ...audio, ...audio, "-map", "0", "-map", "1", "-map", "2"]],
  ])("is what is downloaded: %s", async (_, source) => {
    const asset = await encoded(source);
    await addNames(asset);
    const sizes = await expectTrue(asset);
    expect(Object.values(sizes).filter((bytes) => bytes !== null).length).toBeGreaterThan(0);
  });

  test("of the MP4 file changes with the default audio, also in the feed", async () => {
    const asset = await encoded([...marked("96x54", 25, SECONDS), ...audio], { encoding_profile: "vr" });
    const before = await expectMp4(asset);
    await addNames(asset);
    const sizes = await expectTrue(asset);
    const dub = await addDub(asset);
    const after = await expectTrue(asset);
    expect(after.highest).not.toBe(sizes.highest);
    expect(await expectMp4(asset)).not.toBe(before);
    expect((await app.as(key).deleteAudioTrack(asset.id, dub.id)).status).toBe(204);
    expect(await expectTrue(asset)).toEqual(sizes);
    expect(await expectMp4(asset)).toBe(before);
  });

  test("of a clip that shares its media is its own", async () => {
    const asset = await encoded([...marked("96x54", 25, SECONDS), ...audio]);
    const { body } = await createClip(app, key, asset.id, { start_seconds: 1, end_seconds: 4 });
    while ((await workOnce(app)) !== null);
    const clip = await read(body.id);
    await addNames(clip);
    await expectTrue(clip);
  });
});

/** The feed names the MP4 file of the encoding with its size, which is returned. */
async function expectMp4({ external_id }: Asset): Promise<number> {
  const { text } = await app.call("GET", collection.feed_url);
  const found = new RegExp(`<enclosure url="([^"]+/${external_id}/video\\.mp4)" length="(\\d+)"`).exec(text);
  const [, url = "", length] = found ?? [];
  expect(await sizeOf(url)).toEqual([200, Number(length)]);
  return Number(length);
}

test("sizes are stored: they are there after a restart without storage, where new ones are unknown", async () => {
  const asset = await encoded([...marked("96x54", 25, SECONDS), ...audio]);
  const list = () => app.as(key).listStaticRenditions(asset.id);
  expect((await app.as(key).createStaticRendition(asset.id, { name: "highest" })).status).toBe(201);
  const [known] = (await list()).body;
  expect(known.bytes).toBeGreaterThan(0);
  app.opened.beginStop();
  await app.opened.close();
  rmSync(join(dataDir, "objects"), { recursive: true });
  app = await testApp({}, dataDir);
  expect((await list()).body).toEqual([known]);
  const made = await app.as(key).createStaticRendition(asset.id, { name: "low" });
  expect(made.body).toMatchObject({ name: "low", status: "ready", bytes: null });
});

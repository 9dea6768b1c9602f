import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type Mux from "@mux/mux-node";
import { beforeAll, describe, expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import { film, filmAsset } from "#test/support/clips.ts";
import { atEnd } from "#test/support/folder.ts";
import { muxClient, refusal } from "#test/support/mux/client.ts";

const HOST = "127.0.0.2";
const FILES: Record<string, string> = {
  "/a.vtt": "WEBVTT\n\n00:00.000 --> 00:01.000\nHello\n",
  "/a.srt": "1\n00:00:00,000 --> 00:00:01,000\nHallo\n",
  "/audio": "Whether it is audio is found out by a worker.",
  "/none.vtt": "This is no subtitle.",
};
let app: TestApp;
let tenant: { id: number };
let key: string;
let mux: Mux;
let site: string;
let parent: { id: number };

beforeAll(async () => {
  // Whether it recognizes anything is not asked here.
  app = await testApp({
    transcribe: "command",
    transcribe_command: "/bin/true",
    webhook_allow_cidrs: `${HOST}/32`,
    rate_limit_uploads: "10000/60",
  });
  tenant = await app.tenant();
  key = await app.key(tenant.id);
  mux = muxClient(app, key);
  const server = createServer(({ url = "" }, response) => {
    const text = FILES[url];
    response.writeHead(text === undefined ? 404 : 200).end(text);
  }).listen(0, HOST);
  await once(server, "listening");
  atEnd(async () => void server.close());
  site = `http://${HOST}:${(server.address() as AddressInfo).port}`;
  const tags = { passthrough: "parent", place: "Rome" };
  parent = await filmAsset(app, key, await film(), { title: "The film", tags });
  return app.close;
});

describe("text tracks", () => {
  test("are fetched, changed and deleted", async () => {
    const id = String(parent.id);
    const made = await mux.video.assets.createTrack(id, {
      type: "text",
      text_type: "subtitles",
      language_code: "en",
      url: `${site}/a.vtt`,
      name: "Spoken",
      closed_captions: true,
    });
    expect(made).toMatchObject({ type: "text", language_code: "en", name: "Spoken", status: "ready" });
    expect(made.closed_captions).toBe(true);
    const second = await mux.video.assets.createTrack(id, { type: "text", language_code: "de", url: `${site}/a.srt` });
    expect(second.name).toBe("German");
    expect((await mux.video.assets.retrieve(id)).tracks).toEqual(expect.arrayContaining([made, second]));
    const named = await mux.video.assets.updateTrack(id, second.id as string, { name: "Deutsch" });
    expect(named).toEqual({ ...second, closed_captions: false, name: "Deutsch" });
    const { id: open } = await mux.video.assets.createPlaybackId(id, { policy: "public" });
    const text = await app.call("GET", `/mux/stream/${open}/text/${made.id}.vtt`);
    expect([text.status, text.text]).toEqual([200, expect.stringContaining("Hello")]);
    const spoken = await app.call("GET", `/mux/stream/${open}/text/${made.id}.txt`);
    expect([spoken.status, spoken.text.trim()]).toEqual([200, "Hello"]);
    for (const image of [
      "thumbnail.jpg?time=1&width=64&rotate=90&flip_h=true",
      "storyboard.png",
      "animated.gif?end=0.2&height=36",
    ])
      expect([image, (await app.call("GET", `/mux/image/${open}/${image}`)).status]).toEqual([image, 200]);
    await mux.video.assets.deleteTrack(id, second.id as string);
    expect(await refusal(mux.video.assets.deleteTrack(id, second.id as string))).toMatchObject({ status: 404 });
    expect(await refusal(mux.video.assets.deleteTrack(id, "video"))).toMatchObject({ status: 400 });
    for (const url of ["/none.vtt", "/missing"]) {
      const add = mux.video.assets.createTrack(id, { type: "text", language_code: "fr", url: site + url });
      expect([url, (await refusal(add)).status]).toEqual([url, 400]);
    }
    const labeled = mux.video.assets.createTrack(id, {
      type: "text",
      language_code: "fr",
      url: `${site}/a.vtt`,
      passthrough: "x",
    });
    expect(await refusal(labeled)).toMatchObject({ status: 422, type: "not_supported" });
  });

  test("are generated from the primary audio, with a name, and listed until they are there", async () => {
    const id = String(parent.id);
    const ask = (track: string, generated: any[] = [{ language_code: "it" }]) =>
      mux.video.assets.generateSubtitles(id, track, { generated_subtitles: generated });
    const made = await ask("audio", [{ language_code: "it", name: "Italiano" }, { language_code: "nl" }]);
    expect(made).toMatchObject([
      { type: "text", text_source: "generated_vod", language_code: "it", name: "Italiano", status: "preparing" },
      { type: "text", text_source: "generated_vod", language_code: "nl", status: "preparing" },
    ]);
    expect((await mux.video.assets.retrieve(id)).tracks).toEqual(expect.arrayContaining(made));
    for (const { id: track } of made) await mux.video.assets.deleteTrack(id, track as string);
    expect(await refusal(ask("video"))).toMatchObject({ status: 400 });
    expect(await refusal(ask("99999"))).toMatchObject({ status: 404 });
    expect(await refusal(ask("audio", []))).toMatchObject({ status: 400 });
    expect(await refusal(ask("audio", [{ language_code: "tlh" }]))).toMatchObject({ status: 400 });
    expect(await refusal(ask("audio", [{ passthrough: "x" }]))).toMatchObject({ status: 422, type: "not_supported" });
  });

  test("audio tracks are fetched, encoded by a worker, named and deleted", async () => {
    const id = String(parent.id);
    const fields = { type: "audio", language_code: "fr", url: `${site}/audio` } as const;
    const made = await mux.video.assets.createTrack(id, fields);
    expect(made).toMatchObject({
      type: "audio",
      language_code: "fr",
      name: "French",
      status: "preparing",
      primary: false,
    });
    const { body } = await app.as(key).listAudioTracks(id);
    expect(body.at(-1)).toMatchObject({ language: "fr", name: "French", status: "processing" });
    const captions = mux.video.assets.createTrack(id, { ...fields, closed_captions: true });
    expect(await refusal(captions)).toMatchObject({ status: 400 });
    const named = await mux.video.assets.updateTrack(id, made.id as string, { name: "Commentaire" });
    expect(named).toEqual({ ...made, name: "Commentaire" });
    expect((await mux.video.assets.retrieve(id)).tracks).toContainEqual(named);
    await mux.video.assets.deleteTrack(id, made.id as string);
    const activity = await app.as({ admin: app.admin }).listActivity({ tenant_id: tenant.id, limit: 3 });
    expect(activity.body.map(({ action }: { action: string }) => action)).toEqual([
      "delete_track",
      "update_track",
      "create_track",
    ]);
    expect(await refusal(mux.video.assets.deleteTrack(id, made.id as string))).toMatchObject({ status: 404 });
    expect(await refusal(mux.video.assets.createTrack(id, { ...fields, url: `${site}/missing` }))).toMatchObject({
      status: 400,
    });
  });

  test("come with the inputs of an asset, or there is no asset", async () => {
    const before = (await mux.video.assets.list()).data.length;
    const video = { url: `${site}/film.mp4` };
    const text = (url: string) => ({ type: "text" as const, language_code: "en", url: site + url });
    const made = await mux.video.assets.create({ inputs: [video, text("/a.vtt")] });
    expect(made.tracks).toMatchObject([{ type: "text", language_code: "en", name: "English" }]);
    const broken = mux.video.assets.create({ inputs: [video, text("/missing")] });
    expect(await refusal(broken)).toMatchObject({ status: 400 });
    expect((await mux.video.assets.list()).data.length).toBe(before + 1);
  });
});

test("a clip is a part of another asset, with its own texts and policy", async () => {
  const url = `mux://assets/${parent.id}`;
  const made = await mux.video.assets.create({
    inputs: [{ url, start_time: 1, end_time: 3 }],
    playback_policies: ["public"],
    passthrough: "clip",
  });
  const source_asset_id = String(parent.id);
  expect(made).toMatchObject({ ingest_type: "on_demand_clip", source_asset_id, passthrough: "clip" });
  expect(made.playback_ids).toMatchObject([{ policy: "public" }]);
  const { body } = await app.as(key).getAsset(made.id);
  expect(body.tags).toEqual({ passthrough: "clip", place: "Rome" });
  const wrong = (fields: object) => refusal(mux.video.assets.create({ inputs: [{ url, ...fields }] }));
  expect(await wrong({ start_time: 3, end_time: 2 })).toMatchObject({ status: 400 });
  expect(await wrong({ generated_subtitles: [{ language_code: "en" }] })).toMatchObject({ status: 422 });
  const unknown = mux.video.assets.create({ inputs: [{ url: "mux://assets/999" }] });
  expect(await refusal(unknown)).toMatchObject({ status: 404 });
});

import type Mux from "@mux/mux-node";
import { eq } from "drizzle-orm";
import { beforeEach, describe, expect, expectTypeOf, test } from "vitest";
import { channelCache } from "#features/live/channel-cache.ts";
import { permitPublish } from "#features/live/streams/permit.ts";
import { reasonToEnd } from "#features/live/streams/reason-to-end.ts";
import { toMuxStream } from "#features/mux/live/record.ts";
import { liveStreams } from "#storage/db/schema.ts";
import { type TestApp, testApp } from "#test/support/app.ts";
import { readyAsset } from "#test/support/flow.ts";
import { streamSource, TestStream } from "#test/support/live-stream.ts";
import { muxClient, refusal } from "#test/support/mux/client.ts";
import { recordedStream } from "#test/support/received-stream.ts";

let app: TestApp;
let tenant: { id: number };
let key: string;
let mux: Mux;
beforeEach(async () => {
  app = await testApp();
  tenant = await app.tenant();
  key = await app.key(tenant.id);
  mux = muxClient(app, key);
});
/** What the gateway asks when a publisher connects. */
const publish = (application: string, name: string) =>
  permitPublish(app.opened.app, { app: application, name, query: "", address: "127.0.0.1" });

describe("a live stream", () => {
  test("has Mux's type", () => {
    expectTypeOf(toMuxStream).returns.resolves.toExtend<Mux.Video.LiveStream>();
  });

  test("is created, listed, changed and deleted", async () => {
    const made = await mux.video.liveStreams.create({
      playback_policies: ["public"],
      new_asset_settings: { playback_policies: ["public"] },
      latency_mode: "low",
      passthrough: "mine",
      meta: { title: "Stage" },
      simulcast_targets: [{ url: "rtmp://live.example.com/app", stream_key: "their-key", passthrough: "Elsewhere" }],
    });
    expect(made).toMatchObject({
      status: "idle",
      latency_mode: "low",
      passthrough: "mine",
      meta: { title: "Stage" },
      stream_key: expect.stringMatching(/^live_\w{40}$/),
      playback_ids: [{ id: expect.stringMatching(/^vid_/), policy: "public" }],
      simulcast_targets: [{ passthrough: "Elsewhere", status: "idle" }],
    });
    expect(await mux.video.liveStreams.retrieve(made.id)).toEqual(made);
    expect((await mux.video.liveStreams.list()).data).toEqual([made]);
    const native = await app.as(key).getChannel(made.id);
    expect(native.body).toMatchObject({ name: "Stage", playback_policy: "public", low_latency: true, record: true });
    const changed = await mux.video.liveStreams.update(made.id, { passthrough: "yours", latency_mode: "standard" });
    expect(changed).toMatchObject({ passthrough: "yours", latency_mode: "standard", stream_key: made.stream_key });
    const reader = muxClient(app, await app.key(tenant.id, ["assets:read"]));
    expect((await reader.video.liveStreams.retrieve(made.id)).stream_key).toBe("");
    const stranger = muxClient(app, await app.key((await app.tenant()).id));
    expect((await stranger.video.liveStreams.list()).data).toEqual([]);
    expect(await refusal(stranger.video.liveStreams.delete(made.id))).toMatchObject({ status: 404 });
    const target = made.simulcast_targets?.[0]?.id as string;
    expect(await mux.video.liveStreams.retrieveSimulcastTarget(made.id, target)).toEqual(made.simulcast_targets?.[0]);
    await mux.video.liveStreams.deleteSimulcastTarget(made.id, target);
    const second = await mux.video.liveStreams.createSimulcastTarget(made.id, { url: "rtmp://a.example.com/x/key" });
    expect(second).toMatchObject({ status: "idle" });
    expect(second).not.toHaveProperty("passthrough");
    expect(JSON.stringify(await app.opened.app.db.all("SELECT * FROM mux_streams"))).not.toContain(made.stream_key);
    await mux.video.liveStreams.delete(made.id);
    expect(await refusal(mux.video.liveStreams.retrieve(made.id))).toMatchObject({ status: 404 });
    expect((await mux.video.liveStreams.list()).data).toEqual([]);
  });

  test("is enabled, disabled and completed", async () => {
    const made = await mux.video.liveStreams.create({ playback_policies: ["public"], latency_mode: "standard" });
    expect(made).toMatchObject({ reconnect_window: 60, max_continuous_duration: 43_200 });
    const change = { reconnect_window: 10, max_continuous_duration: 600 };
    expect(await mux.video.liveStreams.update(made.id, change)).toMatchObject(change);
    const native = async () => (await app.as(key).getChannel(made.id)).body;
    expect(await native()).toMatchObject({ reconnect_seconds: 10, max_duration_seconds: 600, enabled: true });
    expect(await publish("app", made.stream_key)).toMatchObject({ channel: { reconnectMs: 10_000 } });
    const withStatus = async (status: "active" | "idle" | "disabled") =>
      (await mux.video.liveStreams.list({ status })).data.map(({ id }) => id);
    await mux.video.liveStreams.disable(made.id);
    expect(await publish("app", made.stream_key)).toEqual({ accepted: false, reason: "refused" });
    expect((await mux.video.liveStreams.retrieve(made.id)).status).toBe("disabled");
    expect([await withStatus("disabled"), await withStatus("idle")]).toEqual([[made.id], []]);
    await mux.video.liveStreams.enable(made.id);
    expect(await publish("app", made.stream_key)).toMatchObject({ accepted: true });
    await mux.video.liveStreams.complete(made.id);
    const testStream = await TestStream.start(app, await native(), { messages: await streamSource(1) });
    expect([await withStatus("active"), await withStatus("idle")]).toEqual([[made.id], []]);
    await mux.video.liveStreams.complete(made.id);
    const known = await channelCache(app.opened.app).find(testStream.stream.channel);
    const reason = (fields: object, now: number) => reasonToEnd({ ...testStream.stream, ...fields }, known, now);
    const { startedAt } = testStream.stream;
    expect(reason({}, startedAt)).toMatch(/was ended/);
    expect(reason({ name: "another" }, startedAt + 599_999)).toBeNull();
    expect(reason({ name: "another" }, startedAt + 600_000)).toMatch(/duration/);
    const { data } = await mux.video.liveStreams.list({ stream_key: made.stream_key });
    expect(data.map(({ id }) => id)).toEqual([made.id]);
    expect((await mux.video.liveStreams.list({ stream_key: "live_other" })).data).toEqual([]);
  });

  test("names its recordings, and they name it", async () => {
    const made = await mux.video.liveStreams.create({ playback_policies: ["public"] });
    const channel = (await app.as(key).getChannel(made.id)).body;
    const ids: string[] = [];
    for (const name of ["one", "two", "three"]) {
      const { asset } = await readyAsset(app, key, { title: name });
      await recordedStream(app, channel, name);
      const set = { endedAt: 1, finishedAt: 1, assetId: asset.id };
      await app.opened.app.write((tx) => tx.update(liveStreams).set(set).where(eq(liveStreams.name, name)));
      ids.push(String(asset.id));
    }
    const others = await readyAsset(app, key);
    expect(await mux.video.assets.retrieve(ids[0] as string)).toMatchObject({
      ingest_type: "live_rtmp",
      live_stream_id: made.id,
      is_live: false,
    });
    expect(await mux.video.assets.retrieve(String(others.asset.id))).not.toHaveProperty("live_stream_id");
    expect((await mux.video.liveStreams.retrieve(made.id)).recent_asset_ids).toEqual(ids);
    const listed: string[] = [];
    for await (const { id } of mux.video.assets.list({ live_stream_id: made.id, limit: 2 })) listed.push(id);
    expect(listed).toEqual(ids.toReversed());
    await mux.video.assets.delete(ids[2] as string);
    expect((await mux.video.liveStreams.retrieve(made.id)).recent_asset_ids).toEqual(ids.slice(0, 2));
    for (const id of ["999", "x"]) expect((await mux.video.assets.list({ live_stream_id: id })).data).toEqual([]);
    const stranger = muxClient(app, await app.key((await app.tenant()).id));
    expect((await stranger.video.assets.list({ live_stream_id: made.id })).data).toEqual([]);
  });

  test("has captions of its speech and of its encoder", async () => {
    const generated = { language_code: "de", name: "Deutsch" } as const;
    const embedded = [{ language_channel: "cc1", language_code: "und", name: "CC1" }] as const;
    const made = await mux.video.liveStreams.create({
      playback_policies: ["public"],
      generated_subtitles: [{ language_code: "de" }],
      embedded_subtitles: [...embedded],
    });
    expect(made.generated_subtitles).toEqual([generated]);
    expect(made.embedded_subtitles?.map(({ name }) => name)).toEqual(["CC1", "CC2", "CC3", "CC4"]);
    const native = async () => (await app.as(key).getChannel(made.id)).body.captions_live;
    expect(await native()).toEqual(["de"]);
    const { liveStreams: streams } = mux.video;
    expect(await streams.updateEmbeddedSubtitles(made.id, { embedded_subtitles: [{}] })).toEqual(made);
    const english = await streams.updateGeneratedSubtitles(made.id, {
      generated_subtitles: [{ language_code: "en-US", name: "American English" }],
    });
    expect(english.generated_subtitles).toEqual([{ language_code: "en-US", name: "American English" }]);
    await streams.updateGeneratedSubtitles(made.id, { generated_subtitles: [] });
    expect(await native()).toEqual([]);
  });

  test("has the latency that it was created with, or changed to", async () => {
    const made = await mux.video.liveStreams.create({ latency_mode: "reduced" });
    expect(made).toMatchObject({
      latency_mode: "reduced",
      low_latency: false,
      reduced_latency: true,
      reconnect_window: 0,
    });
    expect(await mux.video.liveStreams.update(made.id, { latency_mode: "low" })).toMatchObject({ latency_mode: "low" });
    expect(await mux.video.liveStreams.update(made.id, { latency_mode: "reduced" })).toMatchObject({
      latency_mode: "reduced",
      low_latency: false,
    });
    const older = await mux.video.liveStreams.create({ reduced_latency: true });
    expect(older).toMatchObject({ latency_mode: "reduced" });
  });

  test("is published with its key alone, until that is reset", async () => {
    const made = await mux.video.liveStreams.create({ playback_policies: ["public"] });
    expect(await publish("app", made.stream_key)).toMatchObject({
      accepted: true,
      channel: { channelId: Number(made.id) },
    });
    expect(await publish("app", "live_unknown")).toEqual({ accepted: false, reason: "refused" });
    expect(await publish("live", made.stream_key)).toEqual({ accepted: false, reason: "refused" });
    const again = await mux.video.liveStreams.resetStreamKey(made.id);
    expect(again.stream_key).not.toBe(made.stream_key);
    expect(await publish("app", made.stream_key)).toEqual({ accepted: false, reason: "refused" });
    expect(await publish("app", again.stream_key)).toMatchObject({ accepted: true });
    await mux.video.liveStreams.delete(made.id);
    expect(await publish("app", again.stream_key)).toEqual({ accepted: false, reason: "refused" });
  });

  test("plays by its playback ids, with their policies", async () => {
    const made = await mux.video.liveStreams.create({ playback_policies: ["public"] });
    const open = made.playback_ids?.[0]?.id as string;
    const channel = (await app.as(key).getChannel(made.id)).body;
    const testStream = await TestStream.start(app, channel, { messages: await streamSource(4) });
    await testStream.publishUntil(2.3);
    const follow = async (path: string) => {
      const first = await app.call("GET", path);
      if (first.status !== 302) return first.status;
      const { status, text } = await app.call("GET", first.headers.get("location") as string);
      expect(text).toContain("#EXTM3U");
      return status;
    };
    expect(await follow(`/mux/stream/${open}.m3u8?redundant_streams=true`)).toBe(200);
    const signed = await mux.video.liveStreams.createPlaybackId(made.id, { policy: "signed" });
    expect(await mux.video.liveStreams.retrievePlaybackId(made.id, signed.id)).toEqual(signed);
    const signer = await mux.system.signingKeys.create();
    const own = { keyId: signer.id, keySecret: signer.private_key as string };
    const token = await mux.jwt.signPlaybackId(signed.id, own);
    expect(await follow(`/mux/stream/${signed.id}.m3u8?token=${token}`)).toBe(200);
    expect(await follow(`/mux/stream/${signed.id}.m3u8`)).toBe(403);
    expect(await follow(`/mux/stream/${signed.id}.m3u8?token=${await mux.jwt.signPlaybackId(open, own)}`)).toBe(403);
    const image = async (path: string) => {
      const { headers } = await app.call("GET", path);
      const location = headers.get("location") ?? "";
      const response = await app.opened.server.fetch(new Request(location));
      return { location, status: response.status, type: response.headers.get("content-type") };
    };
    const own_image = await mux.jwt.signPlaybackId(signed.id, { ...own, type: "thumbnail", params: { width: "160" } });
    const { location, ...drawn } = await image(`/mux/image/${signed.id}/thumbnail.png?token=${own_image}`);
    expect(drawn).toEqual({ status: 200, type: "image/png" });
    expect(new URL(location).searchParams.get("width")).toBe("160");
    // The token of an image does not open the stream.
    const playlist = location.replace("thumbnail.png", "master.m3u8");
    expect((await app.call("GET", playlist)).status).toBe(403);
    expect((await app.call("GET", `/mux/image/${signed.id}/thumbnail.png`)).status).toBe(403);
    expect((await app.call("GET", `/mux/image/${open}/thumbnail.jpg?time=1`)).status).toBe(422);
    expect(await follow(`/mux/stream/${signed.id}.m3u8?max_resolution=720p&rendition_order=asc&token=${token}`)).toBe(
      200,
    );
    // The channel's own URL opens nothing that a signed id protects.
    expect((await app.call("GET", channel.hls_url)).status).toBe(403);
    expect(await follow(`/mux/stream/${open}.m3u8`)).toBe(200);
    await mux.video.liveStreams.deletePlaybackId(made.id, open);
    expect(await follow(`/mux/stream/${open}.m3u8`)).toBe(404);
    expect(await follow(`/mux/stream/${signed.id}.m3u8?max_resolution=700p`)).toBe(422);
  });

  test.each<[string, object, number]>([
    ["a long reconnect window", { reconnect_window: 1801 }, 400],
    ["a short duration", { max_continuous_duration: 59 }, 400],
    ["a slate", { reconnect_slate_url: "https://example.com/slate.png" }, 422],
    ["an unknown latency", { latency_mode: "none" }, 400],
    ["other assets", { playback_policies: ["public"], new_asset_settings: { playback_policies: ["signed"] } }, 422],
    ["generated subtitles of another name", { generated_subtitles: [{ language_code: "en", name: "Auto" }] }, 422],
    ["generated subtitles in two languages", { generated_subtitles: [{}, { language_code: "de" }] }, 400],
    ["generated subtitles in Danish", { generated_subtitles: [{ language_code: "da" }] }, 400],
    ["a vocabulary", { generated_subtitles: [{ transcription_vocabulary_ids: ["x"] }] }, 422],
    ["embedded subtitles in a language", { embedded_subtitles: [{ language_code: "en" }] }, 422],
    ["embedded subtitles of another name", { embedded_subtitles: [{ language_channel: "cc2", name: "CC1" }] }, 422],
    ["an unknown field", { colour: 1 }, 400],
    ["a target without a URL", { simulcast_targets: [{}] }, 400],
    ["a target that is no URL", { simulcast_targets: [{ url: "nothing" }] }, 400],
  ])("with %s is refused", async (_, body, status) => {
    expect(await refusal(mux.video.liveStreams.create(body as never))).toMatchObject({ status });
    expect((await mux.video.liveStreams.list()).data).toEqual([]);
  });
});

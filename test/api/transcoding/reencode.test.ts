import { beforeAll, expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import { expectError } from "#test/support/error.ts";
import { callback, next, putArtifacts, uploaded } from "#test/support/flow.ts";

let app: TestApp;
let tenantId: number;
let key: string;

beforeAll(async () => {
  app = await testApp({ rate_limit_uploads: "10000/60" });
  tenantId = (await app.tenant()).id;
  key = await app.key(tenantId);
  return app.close;
});

const playlist = "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\n00001.m4s\n#EXT-X-ENDLIST\n";

/** Completes the next job with one rendition, whose segment has this text. */
async function completed(segment: string): Promise<any> {
  const contract = (await next(app)).body;
  const { prefix } = contract.outputs;
  await putArtifacts(app, contract, {
    [`${prefix}low/playlist.m3u8`]: playlist,
    [`${prefix}low/00001.m4s`]: segment,
  });
  const answer = await callback(app, contract, "complete", {
    ...contract.outputs,
    subtitle_paths: {},
    media: { duration_seconds: 4, renditions: [] },
  });
  expect(answer.status, answer.text).toBe(200);
  return contract;
}
const reencode = (id: number, body: unknown = {}, credential: Record<string, unknown> = { key }) =>
  app.as({ ...credential }).unchecked.reencodeAsset(id, body);
const assetOf = async (id: number) => (await app.as(key).getAsset(id)).body;
const get = (url: string) => app.opened.server.fetch(new Request(url));

/** The URL of the segment that the manifest leads to. */
async function segmentUrl(id: number): Promise<string> {
  const { hls_url } = (await app.as(key).getPlayback(id)).body;
  const master = await (await get(hls_url)).text();
  const list = new URL(master.trim().split("\n").at(-1) as string, hls_url).href;
  return new URL("00001.m4s", list).href;
}

test("an asset keeps its old renditions until the new ones are complete, and their segments for another hour", async () => {
  const { asset } = await uploaded(app, key);
  await completed("old");
  const before = await assetOf(asset.id);
  expect(before).toMatchObject({ playback_status: "ready", encoding_profile: "default" });
  const oldSegment = await segmentUrl(asset.id);
  await app.newEvents();
  const queued = await reencode(asset.id, { encoding_profile: "fast" });
  expect(queued.status).toBe(202);
  expect(queued.body).toMatchObject({ asset_id: asset.id, status: "queued", profile: "fast", attempt: 0 });
  expect(await assetOf(asset.id)).toMatchObject({
    playback_status: "ready",
    encoding_profile: "fast",
    manifest_path: before.manifest_path,
  });
  expect(await (await get(await segmentUrl(asset.id))).text()).toBe("old");
  const contract = await completed("new");
  expect(contract.encoding_spec.video.preset).toBe("superfast");
  const after = await assetOf(asset.id);
  expect(after).toMatchObject({ playback_status: "ready", encoding_profile: "fast", error: null });
  expect(after.manifest_path).not.toBe(before.manifest_path);
  expect(await (await get(await segmentUrl(asset.id))).text()).toBe("new");
  const types = (await app.newEvents()).map(({ type }) => type);
  // It was ready all the time.
  expect(types).not.toContain("video.asset.ready");
  expect(types).toContain("video.job.queued");
  await app.runTask("sweep-attempts");
  await app.runTask("sweep-objects");
  expect(await (await get(oldSegment)).text()).toBe("old");
  app.advance(3_600_000 + 1000);
  expect((await get(oldSegment)).status).not.toBe(200);
  await app.runTask("sweep-objects");
  await app.runTask("prune-replaced-media");
  expect(await app.opened.app.objects?.head(before.manifest_path)).toBeNull();
  expect(await (await get(await segmentUrl(asset.id))).text()).toBe("new");
});

test("an asset shows the renditions of its published media: video first, then audio", async () => {
  const HEVC = "hvc1.2.4.L63.90,mp4a.40.2";
  const { asset } = await uploaded(app, key);
  const contract = (await next(app)).body;
  await putArtifacts(app, contract);
  const at = (name: string) => `${contract.outputs.prefix}${name}/playlist.m3u8`;
  const video = { width: 640, height: 360, frame_rate: 25, bandwidth: 900_000, average_bandwidth: 500_000 };
  const media = {
    duration_seconds: 4,
    renditions: [
      { name: "360p", ...video, codecs: "avc1.64001e,mp4a.40.2", bytes: 250_000, playlist_path: at("360p") },
      { name: "360p-hevc", ...video, codecs: HEVC, hdr: "hdr10", bytes: 150_000, playlist_path: at("360p-hevc") },
    ],
    audio_renditions: [
      { name: "audio", bandwidth: 130_000, codecs: "mp4a.40.2", bytes: 65_000, playlist_path: at("audio") },
    ],
  };
  expect((await callback(app, contract, "complete", { ...contract.outputs, media })).status).toBe(200);
  expect((await assetOf(asset.id)).renditions).toEqual([
    { name: "360p", codec: "h264", codecs: "avc1.64001e,mp4a.40.2", ...video, hdr: null, bytes: 250_000 },
    { name: "360p-hevc", codec: "hevc", codecs: HEVC, ...video, hdr: "hdr10", bytes: 150_000 },
    {
      name: "audio",
      codec: "aac",
      codecs: "mp4a.40.2",
      width: null,
      height: null,
      frame_rate: null,
      bandwidth: 130_000,
      average_bandwidth: null,
      hdr: null,
      bytes: 65_000,
    },
  ]);
});

test("an asset that is encoded again as audio only has no size any more", async () => {
  const { asset } = await uploaded(app, key, { source_width: 640, source_height: 360 });
  const publish = async (media: Record<string, unknown>) => {
    const contract = (await next(app)).body;
    await putArtifacts(app, contract);
    const playlist_path = `${contract.outputs.prefix}low/playlist.m3u8`;
    const codecs = media.width === null ? "mp4a.40.2" : "avc1.64001e";
    const rendition = { name: "low", bandwidth: 100_000, codecs, playlist_path };
    const renditions = [{ ...rendition, ...media }];
    const body = { ...contract.outputs, subtitle_paths: {}, media: { duration_seconds: 4, ...media, renditions } };
    const answer = await callback(app, contract, "complete", body);
    expect(answer.status, answer.text).toBe(200);
  };
  const video = { width: 640, height: 360, frame_rate: 25 };
  await publish(video);
  expect(await assetOf(asset.id)).toMatchObject(video);
  await reencode(asset.id, { encoding_profile: "audio" });
  await publish({ width: null, height: null, frame_rate: null });
  expect(await assetOf(asset.id)).toMatchObject({ width: null, height: null, frame_rate: null });
  await reencode(asset.id, { encoding_profile: "default" });
  await publish(video);
  expect(await assetOf(asset.id)).toMatchObject(video);
});

test("a failed one leaves the asset ready with its old renditions, and can be repeated", async () => {
  const { asset } = await uploaded(app, key);
  await completed("old");
  await reencode(asset.id, { encoding_profile: "quality" });
  const contract = (await next(app)).body;
  await callback(app, contract, "fail", { code: "encode_failed", message: "It failed.", retryable: false });
  expect(await assetOf(asset.id)).toMatchObject({ playback_status: "ready", error: { code: "encode_failed" } });
  expect(await (await get(await segmentUrl(asset.id))).text()).toBe("old");
  // Without a name, the profile is the one that was chosen last.
  expect((await reencode(asset.id)).body).toMatchObject({ status: "queued", profile: "quality" });
  await completed("new");
  expect(await (await get(await segmentUrl(asset.id))).text()).toBe("new");
});

test("is refused where it is impossible", async () => {
  const { asset, job } = await uploaded(app, key);
  expectError(await reencode(asset.id), 409, "asset_conflict");
  await completed("old");
  expectError(await reencode(asset.id, { encoding_profile: "unknown" }), 422, "encoding_profile_unknown");
  expectError(await reencode(asset.id, { encoding_profile: 7 }), 422, "validation_failed");
  expectError(await reencode(asset.id, {}, { key: await app.key((await app.tenant()).id) }), 404, "not_found");
  expectError(await reencode(999_999), 404, "not_found");
  await app.as(key).deleteSource(asset.id);
  expectError(await reencode(asset.id), 409, "asset_conflict");
  expect((await app.as(key).getJob(job.id)).body.status).toBe("completed");
});

test("an asset whose own profile cannot be used any more needs another one", async () => {
  await app.as(key).createEncodingProfile({ name: "own" });
  const { asset } = await uploaded(app, key, { encoding_profile: "own" });
  await completed("old");
  await app.as(key).updateEncodingProfile("own", { watermark: {} });
  expectError(await reencode(asset.id), 422, "watermark_missing");
  expect((await app.as(key).deleteEncodingProfile("own")).status).toBe(204);
  const refused = await reencode(asset.id);
  expectError(refused, 422, "encoding_profile_unknown");
  expect(refused.body.error).toContain("own");
  expect(await assetOf(asset.id)).toMatchObject({ encoding_profile: "own", playback_status: "ready" });
  expect((await reencode(asset.id, { encoding_profile: "fast" })).status).toBe(202);
});

import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { testApp } from "#test/support/app.ts";
import { workOnce } from "#test/support/clip-worker.ts";
import { createClip, downloaded } from "#test/support/clips.ts";
import { uploaded } from "#test/support/flow.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { withBox } from "#test/support/media/hdr-sources.ts";
import { fast, ffmpeg, ffprobe, picture } from "#test/support/media/sources.ts";
import { HALF, sphere } from "#test/support/media/spherical-sources.ts";

test("a source of 180 degrees has the tags, and its clips and joins the metadata in their init segments", async () => {
  const app = await testApp({ static_mp4: true, chunk_seconds: 8 });
  const key = await app.key((await app.tenant()).id);
  const input = join(emptyFolder(), "source.mp4");
  await ffmpeg(...picture("320x160", "10", 17), ...fast, input);
  const bytes = withBox(readFileSync(input), sphere({ stereo: 2, shape: HALF }));
  const work = async () => {
    while (await workOnce(app));
  };
  const shown = async (id: number) => (await app.as(key).getAsset(id)).body;
  const playback = async (id: number) => (await app.as(key).getPlayback(id)).body;
  const stated = async (path: string) => {
    const entries = ["-select_streams", "v", "-show_entries", "stream_side_data=type,projection", "-of", "json"];
    return JSON.parse(await ffprobe(...entries, path)).streams[0].side_data_list;
  };
  const METADATA = [{ type: "side by side" }, { projection: "tiled equirectangular" }];
  const expectMetadata = async (id: number) => {
    expect(await shown(id)).toMatchObject({
      playback_status: "ready",
      tags: { vr_projection: "180", vr_stereo: "sbs" },
    });
    const master = await downloaded(app, (await playback(id)).hls_url);
    expect(await stated(master)).toEqual(METADATA);
    return dirname(master);
  };

  const made = await uploaded(app, key, { bytes, playback_policy: "public", tags: { site: "reef" } });
  const kept = await uploaded(app, key, { bytes, tags: { vr_projection: "fisheye" } });
  await work();
  await expectMetadata(made.asset.id);
  const { body: job } = await app.as(key).getJob(made.job.id);
  expect(job).toMatchObject({ uncuttable: null, attempt: 1 });
  expect((await shown(kept.asset.id)).tags).toEqual({ vr_projection: "fisheye", vr_stereo: "sbs" });

  const early = await uploaded(app, key, { bytes, early_playback: true });
  const statusOf = async () => (await shown(early.asset.id)).encoding_status;
  while ((await statusOf()) === "queued") expect(await workOnce(app)).toBe("completed");
  expect(await statusOf()).toBe("partial");
  const { tags } = await shown(early.asset.id);
  expect(tags).toEqual({ vr_projection: "180", vr_stereo: "sbs" });
  await app.as(key).updateTags(early.asset.id, { vr_stereo: null });
  await work();
  expect(await shown(early.asset.id)).toMatchObject({ encoding_status: "complete", tags: { vr_projection: "180" } });
  expect((await shown(early.asset.id)).tags).not.toHaveProperty("vr_stereo");

  const { mp4_url } = await playback(made.asset.id);
  expect(await stated(await downloaded(app, mp4_url))).toEqual(METADATA);

  const cut = { start_seconds: 1.5, end_seconds: 6.3, mode: "exact" };
  const clip = await createClip(app, key, made.asset.id, cut);
  expect(clip.status, clip.text).toBe(201);
  await work();
  await expectMetadata(clip.body.id);
  const joined = await app.as(key).joinAssets({ asset_ids: [made.asset.id, clip.body.id] });
  expect(joined.status, joined.text).toBe(201);
  await work();
  await expectMetadata(joined.body.id);
  await app.close();
});

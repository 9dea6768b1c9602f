import { beforeAll, expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import { expectError } from "#test/support/error.ts";
import { callback, next, putArtifacts, uploaded } from "#test/support/flow.ts";

let app: TestApp;
let key: string;
beforeAll(async () => {
  app = await testApp();
  key = await app.key((await app.tenant()).id);
  return app.close;
});

const VIDEO = { width: 640, height: 360, frame_rate: 25, bandwidth: 900_000 };
const SOUND = { bandwidth: 130_000, codecs: "mp4a.40.2" };

/** The public path of an asset with renditions of these names and codecs. */
async function published(renditions: Record<string, string>): Promise<string> {
  const { asset } = await uploaded(app, key, { playback_policy: "public" });
  const contract = (await next(app)).body;
  const at = (name: string) => `${contract.outputs.prefix}${name}/playlist.m3u8`;
  const variants = Object.entries(renditions).map(
    ([name, codecs]) => `#EXT-X-STREAM-INF:BANDWIDTH=900000,CODECS="${codecs}"\n${name}/playlist.m3u8\n`,
  );
  const sets = Object.entries(renditions).map(
    ([name, codecs]) => `<AdaptationSet><Representation id="${name}" codecs="${codecs}"/></AdaptationSet>`,
  );
  const mpd = `<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" mediaPresentationDuration="PT4S"><Period>${sets.join("")}</Period></MPD>`;
  await putArtifacts(app, contract, {
    [contract.outputs.manifest_path]: `#EXTM3U\n${variants.join("")}`,
    [contract.outputs.dash_manifest_path]: mpd,
    ...Object.fromEntries(
      Object.keys(renditions).map((name) => [at(name), "#EXTM3U\n#EXTINF:4,\n1.m4s\n#EXT-X-ENDLIST\n"]),
    ),
  });
  const media = {
    duration_seconds: 4,
    renditions: Object.entries(renditions).map(([name, codecs]) => ({
      name,
      codecs,
      playlist_path: at(name),
      ...(codecs === SOUND.codecs ? SOUND : VIDEO),
    })),
  };
  const answer = await callback(app, contract, "complete", { ...contract.outputs, subtitle_paths: {}, media });
  expect(answer.status, answer.text).toBe(200);
  return `/media/${asset.external_id}`;
}

test("a manifest that would have no variant is refused, with the codecs that the asset has", async () => {
  const path = await published({ "360p": "avc1.64001e,mp4a.40.2", "360p-hevc": "hvc1.1.6.L63.90,mp4a.40.2" });
  for (const file of ["master.m3u8", "manifest.mpd"]) {
    const kept = await app.call("GET", `${path}/${file}?codecs=hevc,av1`, {});
    expect(kept.status).toBe(200);
    expect(kept.text).not.toContain("avc1");
    const refused = await app.call("GET", `${path}/${file}?codecs=av1`, {});
    expectError(refused, 422, "validation_failed");
    expect(refused.body.error).toBe("codecs must contain a codec of the asset: h264, hevc.");
  }
  const other = await app.call("GET", `${path}/master.m3u8?codecs=h264&rendition=360p-hevc`, {});
  expectError(other, 422, "validation_failed");
  expect(other.body.error).toBe("codecs must contain a codec of rendition 360p-hevc: hevc.");
  expect((await app.call("GET", `${path}/master.m3u8?codecs=hevc&rendition=360p-hevc`, {})).status).toBe(200);
});

test("an asset without video has nothing to leave out", async () => {
  const path = await published({ audio: SOUND.codecs });
  const kept = await app.call("GET", `${path}/master.m3u8?codecs=h264`, {});
  expect(kept.status).toBe(200);
  expect(kept.text).toContain("audio/playlist.m3u8");
});

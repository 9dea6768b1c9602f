import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { encode } from "#media/encode.ts";
import { BUILT_IN_PROFILES, specOf } from "#media/encoding-profiles.ts";
import { probeSource as probe } from "#media/timeline.ts";
import { words } from "#test/support/media/matrix-sources.ts";
import { binaries, complaints, ffmpeg, packetsOf, sound, temporaryFolder } from "#test/support/media/sources.ts";
import { nightly } from "#test/support/nightly.ts";

/** Sources for VR that are larger than the ladder: the profile `vr` copies them in their own size. */

const folder = temporaryFolder("vr-originals");
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const { vr } = BUILT_IN_PROFILES;
const spec = specOf(vr.definition, null, vr);

const GOP = "keyint=20:min-keyint=1:scenecut=0";
const x264 = words(`-c:v libx264 -preset ultrafast -crf 30 -pix_fmt yuv420p -x264-params ${GOP}`);
const x265 = words(
  `-c:v libx265 -preset ultrafast -crf 32 -pix_fmt yuv420p -tag:v hvc1 -x265-params ${GOP}:open-gop=0:log-level=error`,
);
/** Five frames per second of an image that is cheap to encode. */
const wide = (size: string, seconds: number) => [
  ...["-f", "lavfi", "-i", `testsrc=s=512x256:r=5:d=${seconds},scale=${size}:flags=neighbor`],
  ...sound(seconds),
];

async function encodedFile(name: string, args: string[]) {
  const input = join(folder, name);
  await ffmpeg(...args, input);
  const dir = `${input}.out`;
  const result = await encode({
    input,
    outDir: dir,
    spec,
    binaries,
    scratchDir: folder,
    probe: await probe(input, binaries),
  });
  const master = readFileSync(join(dir, result.manifest), "utf8");
  const listed = [...master.matchAll(/^([^#\s]\S*)\/playlist\.m3u8$/gm)].map(([, one]) => one);
  const mpd = readFileSync(join(dir, result.dash), "utf8");
  const priorities = [...mpd.matchAll(/<AdaptationSet[^>]* contentType="video"[^>]*/g)].map(
    ([set]) => /selectionPriority="(\d+)"/.exec(set)?.[1],
  );
  const sizes = Object.fromEntries(result.renditions.map((one) => [one.name, `${one.width}x${one.height}`]));
  return {
    ...result,
    input,
    master,
    listed,
    priorities,
    sizes,
    playlist: (one: string) => join(dir, one, "playlist.m3u8"),
  };
}

test("HEVC of 8192x4096 is copied, next to the ladder in H.264", async () => {
  const { sizes, listed, priorities, master, ...copied } = await encodedFile("a.mp4", [
    ...wide("8192x4096", 3),
    ...x265,
  ]);
  expect(sizes).toEqual({
    "2160p": "4320x2160",
    "1440p": "2880x1440",
    "1080p": "2160x1080",
    "720p": "1440x720",
    "4096p-hevc": "8192x4096",
  });
  expect(await packetsOf(copied.playlist("4096p-hevc"))).toEqual(await packetsOf(copied.input));
  expect(await complaints("-i", copied.playlist("4096p-hevc"), "-f", "null", "-")).toBe("");
  const top = copied.renditions.find(({ name }) => name === "4096p-hevc");
  // Level 6 or higher: 180 is its general_level_idc.
  expect(Number(/^hvc1\.1\.6\.[LH](\d+)/.exec(top?.codecs ?? "")?.[1])).toBeGreaterThanOrEqual(180);
  // A player that prefers HEVC could not adapt.
  expect(listed.at(-1)).toBe("4096p-hevc");
  expect(priorities).toEqual(["2", "1"]);
  expect(master).toContain("RESOLUTION=8192x4096");
  expect(copied).toMatchObject({ width: 8192, height: 4096 });
});

nightly("H.264 above the ladder is one more rendition, which players do not begin with", async () => {
  const { sizes, listed, ...copied } = await encodedFile("b.mp4", [...wide("5760x2880", 5), ...x264]);
  expect(sizes).toEqual({
    "2880p": "5760x2880",
    "2160p": "4320x2160",
    "1440p": "2880x1440",
    "1080p": "2160x1080",
    "720p": "1440x720",
  });
  expect(await packetsOf(copied.playlist("2880p"))).toEqual(await packetsOf(copied.input));
  expect(listed).toEqual(["2160p", "1440p", "1080p", "720p", "2880p"]);
  expect(copied.renditions[0]).toMatchObject({
    name: "2880p",
    codecs: expect.stringMatching(/^avc1\.\w{4}3[2-9a-e],/),
  });
  // It has at most 1080 lines, as without the original.
  const { mp4 } = copied;
  expect(mp4).toBe("video.mp4");
});

test("HEVC within the ladder is copied in its size", async () => {
  const { sizes } = await encodedFile("c.mp4", [...wide("1440x720", 5), ...x265]);
  expect(sizes).toEqual({ "720p": "1440x720", "720p-hevc": "1440x720" });
});

test("a source that is not fit has the ladder only", async () => {
  const open = x265.map((one) => one.replace("open-gop=0", "open-gop=1:bframes=3:b-adapt=0"));
  const { sizes } = await encodedFile("d.mp4", [...wide("1440x720", 5), ...open]);
  expect(sizes).toEqual({ "720p": "1440x720" });
});

import { existsSync, readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { encode } from "#media/encode.ts";
import { encodingSpec as spec } from "#media/encoding-spec.ts";
import type { EncodeResult } from "#media/finish.ts";
import { Inexact } from "#media/parallel/inexact.ts";
import { probeSource as probe } from "#media/timeline.ts";
import { rows } from "#test/support/amount.ts";
import { packetsOf, similarity } from "#test/support/media/parallel/frames.ts";
import { encodedChunk, encodedInParts, planned } from "#test/support/media/parallel/parts.ts";
import { binaries, complaints, ffmpeg, temporaryFolder } from "#test/support/media/sources.ts";
import { nightly } from "#test/support/nightly.ts";

const folder = temporaryFolder("join");
afterAll(() => rmSync(folder, { recursive: true, force: true }));

type Pair = { whole: EncodeResult; parts: EncodeResult; dirs: { whole: string; parts: string } };

/** The same source encoded in one run, and in chunks of two segments. */
async function both(name: string, ...source: string[]): Promise<Pair> {
  const input = join(folder, name);
  await ffmpeg(...source, input);
  const plan = await planned(input, 2);
  expect(plan.uncuttable).toBeNull();
  expect(plan.chunks.length).toBeGreaterThan(2);
  const dirs = { whole: join(folder, `${name}-whole`), parts: join(folder, `${name}-parts`) };
  const media = await probe(input, binaries);
  const whole = await encode({ input, outDir: dirs.whole, spec, binaries, scratchDir: folder, probe: media });
  return { whole, parts: await encodedInParts(input, dirs.parts, plan), dirs };
}

const RATES = { "29.97": "30000/1001", "12.5": "25/2", "50": "50", "30": "30", "23.976": "24000/1001" };

describe.each(rows(Object.entries(RATES), 1))("joined parts at %s frames per second", (name, rate) => {
  test("are the segments of one run", async () => {
    const video = ["-f", "lavfi", "-i", `testsrc2=s=320x180:r=${rate}:d=18.4`];
    const sound = ["-f", "lavfi", "-i", "sine=d=18.4"];
    const encoder = ["-c:v", "libx264", "-preset", "ultrafast", "-crf", "12", "-g", "97", "-c:a", "aac"];
    const { whole, parts, dirs } = await both(`${name}.mp4`, ...video, ...sound, ...encoder);

    for (const field of ["durationSeconds", "width", "height", "frameRate"] as const)
      expect(parts[field]).toBe(whole[field]);
    const shown = ({ renditions }: EncodeResult) =>
      renditions.map(({ name, codecs, frame_rate }) => ({ name, codecs, frame_rate }));
    expect(shown(parts)).toEqual(shown(whole));
    for (const rendition of [...whole.renditions.map((one) => one.name), "audio"]) {
      const file = (dir: string, path: string) => readFileSync(join(dir, rendition, path));
      expect(file(dirs.parts, "init.mp4").equals(file(dirs.whole, "init.mp4")), rendition).toBe(true);
      const playlists = [dirs.parts, dirs.whole].map((dir) => file(dir, "playlist.m3u8").toString());
      expect(playlists[0]).toBe(playlists[1]);
      // Presentation and decoding times and keyframes of every packet.
      expect(await packetsOf(dirs.parts, rendition)).toEqual(await packetsOf(dirs.whole, rendition));
      const playlist = join(dirs.parts, rendition, "playlist.m3u8");
      expect(await complaints("-i", playlist, "-f", "null", "-"), rendition).toBe("");
    }
    for (const { name: rendition } of whole.renditions) {
      // A frame that is one place off differs by far more than two encodes of the same one.
      const psnr = await similarity(dirs.parts, dirs.whole, rendition);
      expect(psnr.length).toBe(Math.round(whole.durationSeconds * (whole.frameRate ?? 0)));
      expect(Math.min(...psnr)).toBeGreaterThan(30);
    }
    expect(readFileSync(join(dirs.parts, "manifest.mpd"), "utf8").replaceAll(/bandwidth="\d+"/g, "")).toBe(
      readFileSync(join(dirs.whole, "manifest.mpd"), "utf8").replaceAll(/bandwidth="\d+"/g, ""),
    );
    for (const file of parts.files) expect(existsSync(join(dirs.parts, file)), file).toBe(true);
    expect(statSync(join(dirs.parts, "thumbnail.jpg")).size).toBeGreaterThan(1000);
    // Lossless audio would be equal; AAC of the same samples is.
    const segment = join("audio", "00003.m4s");
    expect(readFileSync(join(dirs.parts, segment)).equals(readFileSync(join(dirs.whole, segment)))).toBe(true);
  });
});

/** Keyframes at odd distances, at a rate whose segments do not begin at whole seconds. */
const FITTING: Record<string, string[]> = {
  "29.97 frames per second": ["testsrc2=s=512x288:r=30000/1001:d=18.4", "-g", "48"],
  "24 frames per second, and a short last segment": [
    "testsrc2=s=512x288:r=24:d=20.2",
    "-x264-params",
    "keyint=96:scenecut=0",
  ],
};

describe.each(rows(Object.entries(FITTING), 1))("a copied source in parts: %s", (name, [video = "", ...encoder]) => {
  nightly("has the segments of one run", async () => {
    const source = ["-f", "lavfi", "-i", video, "-f", "lavfi", "-i", "sine=r=48000:d=20.4", "-shortest"];
    const fast = ["-c:v", "libx264", "-preset", "superfast", "-crf", "32", "-pix_fmt", "yuv420p", "-c:a", "aac"];
    const { whole, parts, dirs } = await both(`copied ${name}.mp4`, ...source, ...fast, ...encoder);
    const [copied] = whole.renditions;
    const shown = ({ renditions }: EncodeResult) =>
      renditions.map(({ name, codecs, frame_rate }) => ({ name, codecs, frame_rate }));
    expect(shown(parts)).toEqual(shown(whole));
    for (const rendition of [...whole.renditions.map((one) => one.name), "audio"]) {
      const file = (dir: string, path: string) => readFileSync(join(dir, rendition, path));
      expect(file(dirs.parts, "init.mp4").equals(file(dirs.whole, "init.mp4")), rendition).toBe(true);
      expect(file(dirs.parts, "playlist.m3u8").toString()).toBe(file(dirs.whole, "playlist.m3u8").toString());
      expect(await packetsOf(dirs.parts, rendition)).toEqual(await packetsOf(dirs.whole, rendition));
      const playlist = join(dirs.parts, rendition, "playlist.m3u8");
      expect(await complaints("-i", playlist, "-f", "null", "-"), rendition).toBe("");
    }
    // The same packets.
    expect(Math.min(...(await similarity(dirs.parts, dirs.whole, copied?.name ?? "")))).toBe(100);
    for (const { name: rendition } of whole.renditions)
      expect(Math.min(...(await similarity(dirs.parts, dirs.whole, rendition)))).toBeGreaterThan(30);
  });
});

test("a chunk that ends before its last frame is not accepted", async () => {
  const input = join(folder, "short.mp4");
  const source = ["-f", "lavfi", "-i", "testsrc2=s=320x180:r=25:d=20", "-c:v", "libx264", "-preset", "ultrafast"];
  await ffmpeg(...source, input);
  const { plan, chunks } = await planned(input, 2);
  const [chunk] = chunks;
  if (!chunk) throw new Error("No chunk was planned.");
  // As if the source had stated a longer duration than it has.
  const wrong = { ...chunk, first_segment: 4, first_frame: 400, segments: 2, end_frame: 600 };
  await expect(encodedChunk(input, plan, wrong)).rejects.toThrow(Inexact);
});

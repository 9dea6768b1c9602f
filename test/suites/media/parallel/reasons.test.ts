import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { Inexact } from "#media/parallel/inexact.ts";
import { isNightly, rows } from "#test/support/amount.ts";
import { framesToEncode } from "#test/support/media/parallel/frames.ts";
import { encodedChunk, planned } from "#test/support/media/parallel/parts.ts";
import { ffmpeg, temporaryFolder } from "#test/support/media/sources.ts";

const folder = temporaryFolder("reasons");
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const picture = (seconds: number) => ["-f", "lavfi", "-i", `testsrc2=s=160x90:r=25:d=${seconds}`];
const sound = (seconds: number) => ["-f", "lavfi", "-i", `sine=r=48000:d=${seconds}`];
const h264 = ["-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-g", "50"];
/** A size and bitrate that are copied. */
const copied = [...h264, "-crf", "35", "-bf", "0"];
const small = ["-f", "lavfi", "-i", "testsrc2=s=640x360:r=25:d=22"];

/** Why the planner does not cut a source. The server's reasons are those of test/api/transcoding/task-chunks.test.ts. */
const SOURCES: Record<string, [reason: string | null, file: string, ...args: string[]]> = {
  "only audio": ["no_video", "a.m4a", ...sound(22), "-c:a", "aac"],
  "no duration, as browsers record": [
    "unknown_duration",
    "b.webm",
    ...picture(22),
    "-c:v",
    "libvpx",
    "-b:v",
    "1M",
    "-deadline",
    "realtime",
    "-cpu-used",
    "8",
    "-live",
    "1",
  ],
  "audio that outlasts the video": ["held_frame", "c.mp4", ...picture(18), ...sound(22), ...h264, "-c:a", "aac"],
  "audio that is a little longer": [null, "c2.mp4", ...picture(22), ...sound(22.4), ...h264, "-c:a", "aac"],
  "audio that is a little shorter": [null, "c3.mp4", ...picture(22.2), ...sound(22), ...h264, "-c:a", "aac"],
  "video that is copied": [null, "d.mp4", ...small, ...copied],
  "fragments whose video is copied": [
    "passthrough",
    "e.mp4",
    ...small,
    ...copied,
    "-movflags",
    "+frag_keyframe+empty_moov",
  ],
  "fragments that are encoded": [
    null,
    "f.mp4",
    ...picture(22),
    ...h264,
    "-bf",
    "0",
    "-movflags",
    "+frag_keyframe+empty_moov",
  ],
  "a keyframe every 21 s in MP4": [
    "long_gop",
    "g.mp4",
    ...picture(44),
    "-c:v",
    "libx264",
    "-g",
    "525",
    "-keyint_min",
    "525",
  ],
  "a keyframe every 21 s in matroska": [
    "long_gop",
    "g.mkv",
    ...picture(44),
    "-c:v",
    "libx264",
    "-g",
    "525",
    "-keyint_min",
    "525",
  ],
  "a keyframe every 21 s in a transport stream": [
    "long_gop",
    "g.ts",
    ...picture(44),
    "-c:v",
    "libx264",
    "-g",
    "525",
    "-keyint_min",
    "525",
  ],
  "a keyframe every 15 s": [null, "h.mp4", ...picture(44), "-c:v", "libx264", "-g", "375", "-keyint_min", "375"],
};

/** In the full tier one kind of container has such keyframes. */
const NIGHTLY = ["a keyframe every 21 s in MP4", "a keyframe every 21 s in matroska", "audio that is a little shorter"];
const tested = Object.entries(SOURCES).filter(([name]) => isNightly || !NIGHTLY.includes(name));

describe.each(tested)("%s", (name, [reason, file, ...args]) => {
  test(`is ${reason ?? "cut"}`, async () => {
    const input = join(folder, `${name}-${file}`);
    const scenes = args.includes("-keyint_min") ? ["-sc_threshold", "0", "-preset", "ultrafast"] : [];
    await ffmpeg(...args, ...scenes, input);
    expect((await planned(input, 2)).uncuttable).toBe(reason);
  });
});

test.each(rows(["ts", "mkv", "mp4"], 1))(
  "a part that only has a held frame is that of one run, in %s",
  async (ending) => {
    const input = join(folder, `held.${ending}`);
    await ffmpeg(...picture(8), ...sound(8.4), ...h264, "-c:a", "aac", input);
    const { plan } = await planned(input, 1);
    const { frames, seekBackSeconds } = plan;
    expect(frames).toBeGreaterThanOrEqual(210);
    const whole = await framesToEncode(input, plan);
    const stream = whole.filter((frame) => frame.startsWith("0 "));
    expect(stream).toHaveLength(frames ?? 0);
    const part = await framesToEncode(input, plan, { firstFrame: 202, endFrame: null, seekBackSeconds });
    expect(part.filter((frame) => frame.startsWith("0 "))).toEqual(stream.slice(202));
  },
);

test.each(
  rows(
    [
      ["is missing", (data: Buffer) => data.subarray(0, Math.floor(data.length * 0.4))],
      ["is zeros", (data: Buffer) => Buffer.from(data).fill(0, Math.floor(data.length * 0.4))],
    ],
    1,
  ),
)("a source whose end %s is not cut", async (name, damage) => {
  const input = join(folder, `${name}.mp4`);
  await ffmpeg(...picture(44), ...sound(44), ...h264, "-c:a", "aac", "-movflags", "+faststart", `${input}.whole.mp4`);
  writeFileSync(input, damage(readFileSync(`${input}.whole.mp4`)));
  const { plan, uncuttable } = await planned(input, 2);
  expect(uncuttable).toBe("inexact");
  expect(plan.warnings.map(({ code }) => code)).toEqual(["source_truncated"]);
  if (name === "is missing") expect(plan.durationSeconds).toBeLessThan(30);
});

/** Two recordings, one after the other: the clock of the second one begins this much after the end of the first. */
const JUMPS = { "3 s ahead": 3, "30 s back": -30, "1000 s ahead": 1000, "3 s back": -3 };

describe.each(rows(Object.entries(JUMPS), 2))("a clock that jumps %s in a transport stream", (name, seconds) => {
  test("is encoded exactly, or in one run", async () => {
    const at = (start: number) => [...picture(18), ...h264, "-output_ts_offset", String(start), "-f", "mpegts"];
    const first = join(folder, `${name}-1.ts`);
    const second = join(folder, `${name}-2.ts`);
    await ffmpeg(...at(40), first);
    await ffmpeg(...at(58 + seconds), second);
    const input = join(folder, `${name}.ts`);
    writeFileSync(input, Buffer.concat([readFileSync(first), readFileSync(second)]));
    const { plan, chunks, uncuttable } = await planned(input, 2);
    if (uncuttable !== null) return;
    const whole = (await framesToEncode(input, plan)).filter((frame) => frame.startsWith("0 "));
    for (const chunk of chunks.slice(0, 8)) {
      const encoded = await encodedChunk(input, plan, chunk).catch((error) => error);
      // Then the whole source is one run.
      if (encoded instanceof Inexact) return;
      expect(encoded).toBeInstanceOf(Array);
      const range = { firstFrame: chunk.first_frame, endFrame: chunk.end_frame, seekBackSeconds: plan.seekBackSeconds };
      const frames = (await framesToEncode(input, plan, range)).filter((frame) => frame.startsWith("0 "));
      expect(frames).toEqual(whole.slice(chunk.first_frame, chunk.end_frame ?? undefined));
    }
  });
});

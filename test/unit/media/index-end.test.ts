import { join } from "node:path";
import { expect, test } from "vitest";
import { probeSource } from "#media/timeline.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { binaries, ffmpeg } from "#test/support/media/sources.ts";

const SECONDS = 4;
const B_FRAMES = ["-bf", "3", "-x264-params", "b-adapt=0:b-pyramid=normal"];

test.each([
  [2, "libx264", B_FRAMES],
  [5, "libx264", B_FRAMES],
  [15, "libx264", B_FRAMES],
  [30, "libx264", B_FRAMES],
  [5, "libx265", ["-x265-params", "log-level=error:bframes=4"]],
  [5, "libx264", ["-bf", "0"]],
  [5, "libx264", [...B_FRAMES, "-use_editlist", "0"]],
  [5, "libx264", [...B_FRAMES, "-movflags", "negative_cts_offsets"]],
])(
  "video of %i frames a second by %s that is stored out of order (%j) ends with its last frame",
  async (rate, codec, options) => {
    const input = join(emptyFolder(), "video.mp4");
    const graph = `testsrc=s=64x36:r=${rate}:d=${SECONDS}`;
    const sources = ["-f", "lavfi", "-i", graph, "-f", "lavfi", "-i", `sine=d=${SECONDS}`];
    await ffmpeg(
      ...sources,
      "-c:v",
      codec,
      "-preset",
      "veryfast",
      "-pix_fmt",
      "yuv420p",
      ...options,
      "-c:a",
      "aac",
      input,
    );
    const { video } = await probeSource(input, binaries);
    const end = (video?.startSeconds ?? 0) + (video?.durationSeconds ?? 0);
    // Without an edit list the frames begin when they are decoded, and the first one is shown later.
    expect(end).toBeGreaterThanOrEqual(SECONDS - 0.01);
    expect(end).toBeLessThan(SECONDS + (options.includes("-use_editlist") ? 4 / rate : 0) + 0.01);
  },
);

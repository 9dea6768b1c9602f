import { statSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { readClosedCaptions } from "#media/captions/read-captions.ts";
import { encodingSpec } from "#media/encoding-spec.ts";
import { planEncode } from "#media/plan.ts";
import { probeSource } from "#media/timeline.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { captionUnit, erase, type Pair, popOn } from "#test/support/live/closed-captions.ts";
import { writeCaptioned } from "#test/support/media/captioned-source.ts";
import { pairsByFrame } from "#test/support/media/source-captions.ts";
import { binaries, fast, ffmpeg, picture } from "#test/support/media/sources.ts";

const SECONDS = 5;
const TIMES = 60;
const NOTHING: Pair = [0x80, 0x80];

test("memory does not grow with the source, also where all of its packets pass through the process", async () => {
  const folder = emptyFolder();
  const captioned = join(folder, "captioned.mkv");
  const pairs = pairsByFrame([
    [500, popOn("HELLO")],
    [3000, erase()],
  ]);
  await writeCaptioned(captioned, {
    video: [...picture("320x180", "30", SECONDS), ...fast],
    units: ({ index }) => captionUnit([pairs.get(index) ?? NOTHING]),
  });
  // MPEG-2 with as many bits as it can have: there are no units to choose from.
  const once = join(folder, "once.mpg");
  await ffmpeg("-i", captioned, "-vf", "noise=alls=100,scale=640x360", "-c:v", "mpeg2video", "-qscale:v", "1", once);
  const path = join(folder, "long.mkv");
  await ffmpeg("-stream_loop", String(TIMES - 1), "-i", once, "-c", "copy", path);
  const plan = planEncode(await probeSource(path, binaries, { cwd: folder }), encodingSpec);
  const bytes = statSync(path).size;
  expect(bytes).toBeGreaterThan(300 * 2 ** 20);
  const before = process.memoryUsage.rss();
  let most = before;
  const watching = setInterval(() => (most = Math.max(most, process.memoryUsage.rss())), 20);
  const found = await readClosedCaptions({
    input: path,
    plan,
    ffmpeg: binaries.ffmpeg,
    run: { cwd: folder, reads: [path] },
  });
  clearInterval(watching);
  expect(found.map(({ service, vtt }) => [service, vtt.match(/HELLO/g)?.length])).toEqual([["cc1", TIMES]]);
  expect(most - before).toBeLessThan(bytes / 2);
});

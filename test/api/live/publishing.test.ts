import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { Packager } from "#live/cmaf/packager.ts";
import type { StreamEnd } from "#src/lib/codecs/samples.ts";
import type { PublishSink } from "#src/lib/publishing/types.ts";
import { until } from "#test/support/descendants.ts";
import { atEnd, emptyFolder } from "#test/support/folder.ts";
import { aac, collect, joined, packetsIn, picture, sound, x264 } from "#test/support/live/cmaf-publisher.ts";
import { startRtmp } from "#test/support/live/rtmp-recorder.ts";
import { complaints } from "#test/support/media/sources.ts";

/** A publisher over RTMP, recorded as CMAF: a broken connection and a reconnect are one recording. */

const sinkOf = (packager: Packager, onEnd: (end: StreamEnd) => void): PublishSink => ({
  onConfig: (config) => packager.config(config),
  onSample: (sample) => packager.sample(sample),
  onMetadata: () => {},
  onEnd,
});

function publish(url: string, seconds: number, { isLive = false } = {}) {
  const sources = isLive
    ? ["-re", ...picture(seconds), "-re", ...sound(seconds)]
    : [...picture(seconds), ...sound(seconds)];
  const args = ["-nostdin", "-v", "error", ...sources, ...x264(30), ...aac, "-f", "flv", url];
  const child = spawn("ffmpeg", args, { stdio: "ignore" });
  atEnd(() => child.kill("SIGKILL"));
  return { child, exit: once(child, "exit") };
}

test("a publisher that is killed and reconnects continues its recording", async () => {
  const packaged = collect();
  const { packager, parts, segments } = packaged;
  const ends: StreamEnd[] = [];
  const server = await startRtmp({
    authorize: async () => {
      if (ends.length > 0) packager.resume();
      return { accepted: true, sink: sinkOf(packager, (end) => ends.push(end)) };
    },
  });
  const url = `rtmp://127.0.0.1:${server.port}/live/channel`;

  const first = publish(url, 60, { isLive: true });
  await until("two seconds are there", async () => parts.filter(({ track }) => track === "video").length >= 4, 30_000);
  first.child.kill("SIGKILL");
  await first.exit;
  await until("the connection is closed", async () => ends.length === 1);
  expect(ends).toEqual(["disconnected"]);
  packager.interrupt();
  await until("its segment is complete", async () => segments.length === 2);
  const before = segments.find(({ track }) => track === "video")?.durationSeconds ?? 0;

  const { exit } = publish(url, 6);
  expect((await exit)[0]).toBe(0);
  await until("the stream has ended", async () => ends.length === 2);
  expect(ends[1]).toBe("unpublished");
  const recording = await packager.end();
  expect(packaged.changed).toEqual([]);
  expect(recording.video?.durationSeconds).toBeCloseTo(before + 6, 3);
  expect(recording.audio?.durationSeconds).toBeCloseTo(recording.durationSeconds, 0);

  const path = join(emptyFolder(), "recording.mp4");
  writeFileSync(path, await joined(packaged, "video"));
  const times = (await packetsIn(path)).map(({ pts }) => pts).toSorted((a, b) => a - b);
  const gaps = times.slice(1).map((time, index) => Math.round((time - (times[index] as number)) * 30));
  // No two frames are presented at once; B-frames that were lost with the connection are missing before the join.
  expect(Math.min(...gaps)).toBe(1);
  expect(gaps.filter((gap) => gap > 1).length).toBeLessThanOrEqual(2);
  expect(await complaints("-i", path, "-f", "null", "-")).toBe("");
});

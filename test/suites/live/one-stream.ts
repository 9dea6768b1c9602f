import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import type { LiveSample } from "#src/lib/codecs/samples.ts";
import { until } from "#test/support/descendants.ts";
import { onlyStream, type watchedGateway } from "#test/support/live/live-watcher.ts";
import type { Expected } from "#test/support/live/publishers.ts";
import { complaints } from "#test/support/media/sources.ts";

/** The last packets, of which each belongs to where most of it is. */
const MAX_LOST = 4;
const TOLERANCE_SECONDS = 0.6;

type WatchedGateway = ReturnType<typeof watchedGateway>;

/** Resolves when the recordings of all streams are complete. Throws for an error in the log. */
export const untilFinished = ({ log, streams }: WatchedGateway) =>
  until("the recording is finished", async () => {
    const failed = log.find(({ fields }) => fields.error !== undefined);
    if (failed) throw new Error(`${failed.message}: ${failed.fields.error}`);
    return streams.length > 0 && streams.every((one) => one.finished !== undefined);
  });

/** How many of the packets of audio that were sent are not in the recording, in their order. */
function lostAudio(folder: string, sent: readonly { sample?: LiveSample }[]): number {
  const files = globSync("*.recording/audio/?????.m4s", { cwd: folder }).toSorted();
  const content = Buffer.concat(files.map((file) => readFileSync(join(folder, file))));
  let at = 0;
  let lost = 0;
  for (const { sample } of sent) {
    if (sample?.kind !== "audio") continue;
    const found = content.indexOf(sample.data, at);
    if (found === -1) lost++;
    else at = found + sample.data.length;
  }
  return lost;
}

/**
 * What a publisher has sent is one stream and one recording, whose playlists and manifests were valid at any time. `sent`: samples,
 * where the recording has the same bytes.
 */
export async function expectOneStream(
  watched: WatchedGateway,
  {
    seconds,
    expected = {},
    sent = [],
  }: { seconds: number; expected?: Expected; sent?: readonly { sample?: LiveSample }[] },
): Promise<void> {
  const { streams, folder, log } = watched;
  const stream = onlyStream(streams);
  await stream.manifests;
  expect(stream.faults).toEqual([]);
  const { tracks = ["video", "audio"], isIndependent = true, maxLost = MAX_LOST } = expected;
  const kinds = [...stream.timeline.listed()].map(({ init }) => init.kind).toSorted();
  expect(kinds).toEqual(tracks.toSorted());
  const length = expected.seconds ?? seconds;
  for (const { init, segments } of stream.timeline.listed()) {
    const end = segments.at(-1);
    const endSeconds = (end?.startSeconds ?? 0) + (end?.durationSeconds ?? 0);
    expect([init.kind, endSeconds, Math.abs(endSeconds - length) < TOLERANCE_SECONDS]).toEqual([
      init.kind,
      endSeconds,
      true,
    ]);
    expect(segments[0]?.segment).toBe(1);
  }
  expect(Math.abs(stream.finished.durationSeconds - length)).toBeLessThan(TOLERANCE_SECONDS);
  const manifest = join(folder, `${stream.name}.recording`, stream.finished.manifest);
  const recorded = readFileSync(manifest, "utf8");
  const video = [...stream.playlists].filter(([track]) => track !== "audio").map(([, text]) => text);
  for (const text of [...video, recorded]) expect(text.includes("#EXT-X-INDEPENDENT-SEGMENTS")).toBe(isIndependent);
  expect(stream.timeline.facts().targetSeconds).toBeLessThanOrEqual(expected.target ?? 2);
  if (expected.seconds === undefined) expect(lostAudio(folder, sent)).toBeLessThanOrEqual(maxLost);
  // Frames that are repeated for decoders are presented at almost the same time, which ffmpeg reports otherwise.
  expect(await complaints("-i", manifest, "-fps_mode", "vfr", "-f", "null", "-")).toBe("");
  const codes = log
    .map(({ fields }) => fields.code)
    .filter((code) => code === "track_ignored" || code === "configuration_missing");
  expect(codes).toEqual(expected.warnings ?? []);
  if (expected.captioned) expect(stream.captioned).toEqual(expected.captioned);
}

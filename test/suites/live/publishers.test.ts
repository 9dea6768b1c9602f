import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { amfObject, encodeAmf0 } from "#src/lib/rtmp/amf0.ts";
import { rows } from "#test/support/amount.ts";
import { until } from "#test/support/descendants.ts";
import { onlyStream, watchedGateway } from "#test/support/live/live-watcher.ts";
import { messagesFrom, PUBLISHERS, type Publisher, rtmpBytes, type Sent } from "#test/support/live/publishers.ts";
import { command, message, RtmpClient } from "#test/support/live/rtmp-client.ts";
import { startRtmp } from "#test/support/live/rtmp-recorder.ts";
import { complaints } from "#test/support/media/sources.ts";

/** Every publisher of the table is one broadcast and one recording, and its playlists are valid at any time. */

const DATA = 18;
/** The last packets, of which each belongs to where most of it is. */
const MAX_LOST = 4;
const metadataBytes = (values: Record<string, number>) =>
  message({ type: DATA }, encodeAmf0("@setDataFrame", "onMetaData", amfObject(values)));

async function publish(publisher: Publisher) {
  const watched = watchedGateway();
  const { gateway, streams } = watched;
  const { port } = await startRtmp({ authorize: (request) => gateway.authorize(request) });
  const client = await RtmpClient.publish(port);
  if (publisher.metadata) client.write(metadataBytes(publisher.metadata));
  const sent = await messagesFrom(publisher);
  for (const message of sent) client.write(rtmpBytes(message));
  client.write(command("deleteStream", 6, null, 1));
  await client.closed;
  await until("the recording is finished", async () => {
    const failed = watched.log.find(({ fields }) => fields.error !== undefined);
    if (failed) throw new Error(`${failed.message}: ${failed.fields.error}`);
    return streams.length > 0 && streams.every((one) => one.finished !== undefined);
  });
  return { ...watched, stream: onlyStream(streams), sent };
}

/** How many of the packets of audio that were sent are not in the recording, in their order. */
function lostAudio(folder: string, sent: readonly Sent[]): number {
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

test.each(rows(PUBLISHERS, 7))("$what", async (publisher) => {
  const { stream, log, folder, sent } = await publish(publisher);
  const { seconds, expected = {} } = publisher;
  expect(stream.faults).toEqual([]);
  const { tracks = ["video", "audio"] } = expected;
  const kinds = [...stream.timeline.listed()].map(({ init }) => init.kind).toSorted();
  expect(kinds).toEqual(tracks.toSorted());
  const length = expected.seconds ?? seconds;
  for (const { init, segments } of stream.timeline.listed()) {
    const end = segments.at(-1);
    expect([init.kind, Math.abs((end?.startSeconds ?? 0) + (end?.durationSeconds ?? 0) - length) < 0.6]).toEqual([
      init.kind,
      true,
    ]);
    expect(segments[0]?.segment).toBe(1);
  }
  expect(Math.abs(stream.finished.durationSeconds - length)).toBeLessThan(0.6);
  const manifest = join(folder, `${stream.name}.recording`, stream.finished.manifest);
  const { isIndependent = true } = expected;
  const recorded = readFileSync(manifest, "utf8");
  const video = [...stream.playlists].filter(([track]) => track !== "audio").map(([, text]) => text);
  for (const text of [...video, recorded]) expect(text.includes("#EXT-X-INDEPENDENT-SEGMENTS")).toBe(isIndependent);
  expect(stream.timeline.facts().targetSeconds).toBeLessThanOrEqual(expected.target ?? 2);
  if (expected.seconds === undefined) expect(lostAudio(folder, sent)).toBeLessThanOrEqual(MAX_LOST);
  // Frames that are repeated for decoders are presented at almost the same time, which ffmpeg reports otherwise.
  expect(await complaints("-i", manifest, "-fps_mode", "vfr", "-f", "null", "-")).toBe("");
  const codes = log
    .map(({ fields }) => fields.code)
    .filter((code) => code === "track_ignored" || code === "configuration_missing");
  expect(codes).toEqual(expected.warnings ?? []);
});

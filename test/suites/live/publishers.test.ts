import { expect, test } from "vitest";
import { amfObject, encodeAmf0 } from "../../../src/live/rtmp/amf0.ts";
import { rows } from "../../support/amount.ts";
import { until } from "../../support/descendants.ts";
import { onlyStream, watchedGateway } from "../../support/live/live-watcher.ts";
import { messagesFrom, PUBLISHERS, type Publisher, rtmpBytes } from "../../support/live/publishers.ts";
import { command, message, RtmpClient } from "../../support/live/rtmp-client.ts";
import { startRtmp } from "../../support/live/rtmp-recorder.ts";

/** Every publisher of the table is one broadcast and one recording, and its playlists are valid at any time. */

const DATA = 18;
const metadataBytes = (values: Record<string, number>) =>
  message({ type: DATA }, encodeAmf0("@setDataFrame", "onMetaData", amfObject(values)));

async function publish(publisher: Publisher) {
  const watched = watchedGateway();
  const { gateway, streams } = watched;
  const { port } = await startRtmp({ authorize: (request) => gateway.authorize(request) });
  const client = await RtmpClient.publish(port);
  if (publisher.metadata) client.write(metadataBytes(publisher.metadata));
  for (const sent of await messagesFrom(publisher)) client.write(rtmpBytes(sent));
  client.write(command("deleteStream", 6, null, 1));
  await client.closed;
  await until("the recording is finished", async () => {
    const failed = watched.log.find(({ fields }) => fields.error !== undefined);
    if (failed) throw new Error(`${failed.message}: ${failed.fields.error}`);
    return streams.length > 0 && streams.every((one) => one.finished !== undefined);
  });
  return { ...watched, stream: onlyStream(streams) };
}

test.each(rows(PUBLISHERS, 6))("$what", async (publisher) => {
  const { stream, log } = await publish(publisher);
  const { seconds, expected = {} } = publisher;
  expect(stream.faults).toEqual([]);
  const { tracks = ["video", "audio"] } = expected;
  const kinds = [...stream.timeline.listed()].map(({ init }) => init.kind).toSorted();
  expect(kinds).toEqual(tracks.toSorted());
  const length = expected.seconds ?? seconds;
  for (const { init, segments } of stream.timeline.listed()) {
    const end = segments.at(-1);
    expect([init.kind, Math.abs((end?.startSeconds ?? 0) + (end?.durationSeconds ?? 0) - length) < 0.6]).toEqual([init.kind, true]);
    expect(segments[0]?.segment).toBe(1);
  }
  expect(Math.abs(stream.finished.durationSeconds - length)).toBeLessThan(0.6);
  const codes = log.map(({ fields }) => fields.code).filter((code) => code === "track_ignored" || code === "configuration_missing");
  expect(codes).toEqual(expected.warnings ?? []);
});

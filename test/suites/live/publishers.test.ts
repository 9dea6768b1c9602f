import { setTimeout as sleep } from "node:timers/promises";
import { test } from "vitest";
import { amfObject, encodeAmf0 } from "#src/lib/rtmp/amf0.ts";
import { rows } from "#test/support/amount.ts";
import { Random } from "#test/support/crash/random.ts";
import { watchedGateway } from "#test/support/live/live-watcher.ts";
import { messagesFrom, PUBLISHERS, type Publisher, rtmpBytes } from "#test/support/live/publishers.ts";
import { command, message, RtmpClient } from "#test/support/live/rtmp-client.ts";
import { startRtmp } from "#test/support/live/rtmp-recorder.ts";
import { expectOneStream, untilFinished } from "./one-stream.ts";

/** Every publisher of RTMP in the table is one stream and one recording. */

const DATA = 18;
const metadataBytes = (values: Record<string, number>) =>
  message({ type: DATA }, encodeAmf0("@setDataFrame", "onMetaData", amfObject(values)));

test.each(rows(PUBLISHERS, 3))("$what", (publisher) => expectPublished(publisher));

const reconnecting = PUBLISHERS.filter(({ connections }) => connections);
test.each(rows(reconnecting, 1))("$what, next to a disk that is slow now and then", async (publisher) => {
  // The last part of one track is written late, when those of the next connection arrive.
  const random = new Random(5);
  await expectPublished(publisher, () => sleep(random.chance(0.2) ? 120 : 0));
});

async function expectPublished(publisher: Publisher, requireSpace?: () => Promise<void>): Promise<void> {
  const { seconds, expected, metadata } = publisher;
  const watched = watchedGateway({ takeover: true }, requireSpace);
  const { port } = await startRtmp({ authorize: (request) => watched.gateway.authorize(request) });
  const connections = await messagesFrom(publisher);
  for (const [index, sent] of connections.entries()) {
    const client = await RtmpClient.publish(port);
    if (metadata) client.write(metadataBytes(metadata));
    for (const message of sent) client.write(rtmpBytes(message));
    // A connection that is replaced was read to its end.
    if (index < connections.length - 1) await client.answered();
    else client.write(command("deleteStream", 6, null, 1));
    if (index === connections.length - 1) await client.closed;
  }
  await untilFinished(watched);
  await expectOneStream(watched, { seconds, expected, sent: connections.flat() });
}

import { test } from "vitest";
import { amfObject, encodeAmf0 } from "#src/lib/rtmp/amf0.ts";
import { rows } from "#test/support/amount.ts";
import { watchedGateway } from "#test/support/live/live-watcher.ts";
import { messagesFrom, PUBLISHERS, rtmpBytes } from "#test/support/live/publishers.ts";
import { command, message, RtmpClient } from "#test/support/live/rtmp-client.ts";
import { startRtmp } from "#test/support/live/rtmp-recorder.ts";
import { expectOneBroadcast, untilFinished } from "./one-broadcast.ts";

/** Every publisher of RTMP in the table is one broadcast and one recording. */

const DATA = 18;
const metadataBytes = (values: Record<string, number>) =>
  message({ type: DATA }, encodeAmf0("@setDataFrame", "onMetaData", amfObject(values)));

test.each(rows(PUBLISHERS, 6))("$what", async (publisher) => {
  const { seconds, expected, metadata } = publisher;
  const watched = watchedGateway({ takeover: true });
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
  await expectOneBroadcast(watched, { seconds, expected, sent: connections.flat() });
});

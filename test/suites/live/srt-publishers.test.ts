import { expect, test } from "vitest";
import { rows } from "#test/support/amount.ts";
import { until } from "#test/support/descendants.ts";
import { watchedGateway } from "#test/support/live/live-watcher.ts";
import { SrtClient } from "#test/support/live/srt-client.ts";
import { SRT_PUBLISHERS, transportStreamsOf } from "#test/support/live/srt-publishers.ts";
import { startSrt } from "#test/support/live/srt-recorder.ts";
import { expectOneStream, untilFinished } from "./one-stream.ts";

/** Every publisher of SRT in the table is one stream and one recording, or is rejected with the reason. */

test.each(rows(SRT_PUBLISHERS, 3))("$what", async (publisher) => {
  const { seconds, expected, rejected } = publisher;
  const watched = watchedGateway({ takeover: true });
  const { port, log } = await startSrt({
    authorize: (request) => watched.gateway.authorize(request),
    limits: { maxBitrate: 500_000_000 },
  });
  const { connections, sent } = await transportStreamsOf(publisher);
  for (const [index, bytes] of connections.entries()) {
    const { client, destination } = await SrtClient.publish(port);
    await client.stream(destination, bytes, { isAwaited: !rejected });
    if (index === connections.length - 1) client.shutdown(destination);
  }
  if (rejected) {
    const reason = await until("the stream is rejected", async () =>
      log.find(({ message }) => message === "a stream was rejected"),
    );
    expect(reason.fields.reason).toMatch(rejected);
    return;
  }
  await untilFinished(watched);
  expect(log.filter(({ level }) => level !== "info")).toEqual([]);
  await expectOneStream(watched, { seconds, expected, sent });
});

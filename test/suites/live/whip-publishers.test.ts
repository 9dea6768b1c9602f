import { join } from "node:path";
import { expect, test } from "vitest";
import { createWhipServer } from "#live/whip/server.ts";
import { rows } from "#test/support/amount.ts";
import { atEnd } from "#test/support/folder.ts";
import { watchedGateway } from "#test/support/live/live-watcher.ts";
import { type Exchange, WhipClient } from "#test/support/live/whip-client.ts";
import { mediaOf, WHIP_PUBLISHERS } from "#test/support/live/whip-publishers.ts";
import { binaries } from "#test/support/media/sources.ts";
import { expectOneStream, untilFinished } from "./one-stream.ts";
import { signalsOf } from "./whip-server.ts";

/** Every publisher of WHIP in the table is one stream and one recording. */

const CHANNEL = "stage";

test.each(rows(WHIP_PUBLISHERS, 2))("$what", async (publisher) => {
  const { seconds, expected, audioDelayMs, wallMs, brokenAt = Number.POSITIVE_INFINITY, starts } = publisher;
  const { media, offer } = await mediaOf(publisher);
  const watched = watchedGateway({ takeover: true });
  const problems: unknown[] = [];
  const server = await createWhipServer({
    authorize: (request) => watched.gateway.authorize(request),
    addresses: [],
    ffmpeg: binaries.ffmpeg,
    log: (level, message, fields) => {
      if (level !== "info") problems.push({ message, fields });
    },
  });
  atEnd(() => server.close());
  await server.listen(0, "127.0.0.1");
  const publish: Exchange = async (text) => {
    const request = { channel: CHANNEL, key: "key", address: "127.0.0.1", encoder: "", offer: text };
    const answer = await server.handle({ action: "publish", ...request });
    if (answer.status !== 201) throw new Error(JSON.stringify(answer));
    return { status: 201, answer: answer.answer, location: answer.session };
  };
  const ends = [brokenAt, Number.POSITIVE_INFINITY].slice(Number.isFinite(brokenAt) ? 0 : 1);
  for (const [index, end] of ends.entries()) {
    const client = await WhipClient.connect(publish, offer);
    for (const source of starts ? [client.video, client.audio] : [])
      Object.assign(source, { sequence: starts?.sequence, base: starts?.timestamp });
    const from = ends[index - 1] ?? 0;
    const piece = (timed: { ms: number }) => timed.ms >= from && timed.ms < end;
    await client.publish(
      {
        video: media.video.filter(piece).map((one) => ({ ...one, ms: one.ms - from })),
        audio: media.audio.filter(piece).map((one) => ({ ...one, ms: one.ms - from })),
        layers: media.layers ?? [],
      },
      { audioDelayMs, wallMs },
    );
    if (index < ends.length - 1) client.abandon();
    else
      expect(await server.handle({ action: "end", channel: CHANNEL, session: client.location })).toEqual({
        status: 200,
      });
  }
  await untilFinished(watched);
  expect(problems).toEqual([]);
  await expectOneStream(watched, { seconds, expected });
  if (publisher.video === null || publisher.audio === false) return;
  const [stream] = watched.streams;
  const recording = join(watched.folder, `${stream?.name}.recording`, stream?.finished?.manifest ?? "");
  const signals = await signalsOf(recording);
  const least = publisher.signals ?? (expected?.seconds ?? seconds) - 1;
  expect([signals.video.length >= least, signals.audio.length >= least, signals]).toEqual([true, true, signals]);
  const distances = signals.audio.map((time) => Math.min(...signals.video.map((other) => Math.abs(other - time))));
  // Those of the other track may be in a pause.
  expect([distances.filter((distance) => distance < 0.06).length >= least, signals]).toEqual([true, signals]);
});

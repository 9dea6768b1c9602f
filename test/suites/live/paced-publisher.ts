import type { LiveVideoCodec } from "#src/lib/codecs/samples.ts";
import { configPayload, samplePayload } from "#src/lib/rtmp/tag-writer.ts";
import { atEnd } from "#test/support/folder.ts";
import type { Message } from "#test/support/live/flv-reader.ts";
import { RtmpClient, VIDEO } from "#test/support/live/rtmp-client.ts";
import type { LiveServer, TestChannel } from "#test/support/live.ts";

const TICK_MS = 20;

/**
 * Publishes video by enhanced RTMP in real time until the end of the test, over and over: ffmpeg 5.1 cannot. `seconds`: its
 * duration, in closed GOPs.
 */
export async function publishVideo(
  { rtmp }: Pick<LiveServer, "rtmp">,
  { channel, stream_key }: Pick<TestChannel, "channel" | "stream_key">,
  { codec, messages, seconds }: { codec: LiveVideoCodec; messages: readonly Message[]; seconds: number },
): Promise<RtmpClient> {
  const client = await RtmpClient.publish(Number(new URL(rtmp).port), { name: `${channel}?key=${stream_key}` });
  const samples = messages.flatMap((message) => (message.sample ? [message.sample] : []));
  for (const message of messages) if (message.config) client.media(VIDEO, 0, configPayload(message.config));
  const startedAt = performance.now();
  let next = 0;
  const timer = setInterval(() => {
    for (;;) {
      const sample = samples[next % samples.length] as (typeof samples)[number];
      const timestamp = sample.timestamp + Math.floor(next / samples.length) * seconds * 1000;
      if (timestamp > performance.now() - startedAt) return;
      client.media(VIDEO, timestamp, samplePayload({ ...sample, timestamp }, codec));
      next++;
    }
  }, TICK_MS);
  atEnd(() => clearInterval(timer));
  return client;
}

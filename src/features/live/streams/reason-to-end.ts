import type { App } from "#app.ts";
import { type CachedChannel, channelCache } from "../channel-cache.ts";
import { type LiveStream, liveRegistry } from "../registry.ts";

/** What the publisher receives. */
export const NOT_ACCEPTED = "The channel does not accept publishers any more.";
const ENDED = "The stream was ended. Publish again to begin another one.";
const TOO_LONG = "The stream has reached the longest duration of its channel.";

/**
 * Why the channel, as it is now, does not accept a running stream any more; null where it does. `known`: undefined for a
 * channel that is revoked, or whose tenant is suspended. `now`: ms since the epoch.
 */
export function reasonToEnd(
  { name, channelId, startedAt }: Pick<LiveStream, "name" | "channelId" | "startedAt">,
  known: CachedChannel | undefined,
  now: number,
): string | null {
  if (known?.id !== channelId || !known.enabled) return NOT_ACCEPTED;
  if (known.endedStream === name) return ENDED;
  const { maxDurationSeconds: max } = known;
  return max !== null && now - startedAt >= max * 1000 ? TOO_LONG : null;
}

/** The running streams of this server that their channels do not accept any more. */
export async function* unwantedStreams(app: App): AsyncGenerator<{ name: string; reason: string }> {
  const channels = channelCache(app);
  for (const stream of liveRegistry(app).all()) {
    if (stream.endedAt !== null) continue;
    // A database that does not answer ends no stream.
    const known = await channels.find(stream.channel).catch(() => null);
    const reason = known === null ? null : reasonToEnd(stream, known, app.clock.now());
    if (reason !== null) yield { name: stream.name, reason };
  }
}

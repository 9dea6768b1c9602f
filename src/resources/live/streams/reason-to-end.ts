import type { CachedChannel } from "../channel-cache.ts";
import type { LiveStream } from "../registry.ts";

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

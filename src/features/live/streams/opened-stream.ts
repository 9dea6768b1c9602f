import { LiveCaptions } from "#live/captions/live-captions.ts";
import type { OpenedStream } from "#live/ingest/messages.ts";
import { LiveTimeline } from "#live/playlists/timeline.ts";
import { ViewerCount } from "#live/playlists/viewer-count.ts";
import { LIVE_PLAYLIST, type LiveStream } from "../registry.ts";

/** A stream that the ingest process has opened, whose files are in `folder`. */
export function newStream(opened: OpenedStream, folder: string): LiveStream {
  const { name, channel, startedAtMs, partTargetSeconds, segmentTargetSeconds, tracks } = opened;
  const captions = new LiveCaptions();
  const timeline = new LiveTimeline({
    startedAtMs,
    partTargetSeconds,
    segmentTargetSeconds,
    playlistName: LIVE_PLAYLIST,
    captions,
    dvrSeconds: channel.dvrSeconds,
    isLowLatency: channel.isLowLatency,
  });
  for (const track of tracks) timeline.init(track);
  return {
    name,
    timeline,
    captions,
    tenantId: channel.tenantId,
    channelId: channel.channelId,
    channel: channel.channel,
    startedAt: startedAtMs,
    endedAt: null,
    viewers: new ViewerCount(),
    health: null,
    viewersElsewhere: new Map(),
    folder,
  };
}

import { type LiveStream, liveRegistry } from "#features/live/registry.ts";
import { LiveCaptions } from "#live/captions/live-captions.ts";
import { LiveTimeline } from "#live/playlists/timeline.ts";
import { ViewerCount } from "#live/playlists/viewer-count.ts";
import { liveStreams } from "#storage/db/schema.ts";
import type { TestApp } from "./app.ts";

type Channel = { id: number; tenant_id: number; channel: string };

/** A stream in the database, as a server records it. */
export async function recordedStream(app: TestApp, { id, tenant_id }: Channel, name: string): Promise<void> {
  const at = app.opened.app.clock.now();
  const times = { startedAt: at, createdAt: at, updatedAt: at };
  await app.opened.app.write((tx) =>
    tx.insert(liveStreams).values({ tenantId: tenant_id, channelId: id, name, recorded: true, ...times }),
  );
}

/** The same in the memory of the server that receives it, without media. */
export function receivedStream(app: TestApp, { id, tenant_id, channel }: Channel, name: string): LiveStream {
  const startedAt = app.opened.app.clock.now();
  const options = { startedAtMs: startedAt, dvrSeconds: 60, isLowLatency: true, playlistName: "live.m3u8" };
  const stream: LiveStream = {
    name,
    tenantId: tenant_id,
    channelId: id,
    channel,
    startedAt,
    endedAt: null,
    folder: "/nowhere",
    timeline: new LiveTimeline({ ...options, partTargetSeconds: 0.5, segmentTargetSeconds: 2 }),
    viewers: new ViewerCount(),
    health: null,
    captions: new LiveCaptions(),
    viewersElsewhere: new Map(),
  };
  liveRegistry(app.opened.app).add(stream);
  return stream;
}

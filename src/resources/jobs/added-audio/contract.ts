import type * as v from "valibot";
import type { App } from "../../../app.ts";
import { storageOf } from "../../../http/storage.ts";
import { iso } from "../../../lib/clock.ts";
import { encodingSpec } from "../../../media/encoding-spec.ts";
import type { WorkerContract } from "../../../protocol/worker.ts";
import { heartbeatSeconds } from "../lease.ts";
import { urlLease } from "../lease-urls.ts";
import type { LeasedTrack } from "./queue.ts";

/** Ids of the contracts of tracks: apart from those of jobs, by which workers name directories. */
const FIRST_ID = 1_000_000_000_000;
const SIGNED_FOR_MS = 24 * 3_600_000;

/** The encode of an added track as a worker receives it: a job with audio alone, as long as the asset. */
export async function trackContract(
  app: App,
  { track, asset, token }: LeasedTrack,
  sharesDisk: boolean,
): Promise<v.InferInput<typeof WorkerContract>> {
  const objects = storageOf(app);
  const [prefix, sourceKey] = [track.prefix as string, track.sourceKey as string];
  const lease = urlLease(app, `audio:${track.id}`);
  const source = await objects.signGet(sourceKey, { expiresAt: new Date(app.clock.now() + SIGNED_FOR_MS), lease });
  const callbacks = `${app.baseUrl()}/api/v1/audio_track_jobs/${track.id}`;
  const local = (key: string) => (sharesDisk ? objects.localPath(key) : null);
  const { audio, video, static_mp4 } = encodingSpec;
  return {
    schema_version: 1,
    job: { id: FIRST_ID + track.id, asset_id: asset.id, attempt: track.attempts, profile: "audio" },
    lease: {
      token,
      expires_at: iso(track.leaseExpiresAt ?? 0),
      heartbeat_interval_seconds: heartbeatSeconds(app),
    },
    source: {
      ...{ url: source.url, method: source.method, headers: source.headers },
      ...{ bytes: track.bytes, content_type: "application/octet-stream", local_path: local(sourceKey), sha256: null },
    },
    outputs: {
      prefix,
      manifest_path: `${prefix}master.m3u8`,
      dash_manifest_path: `${prefix}manifest.mpd`,
      thumbnail_path: `${prefix}thumbnail.jpg`,
      storyboard_path: `${prefix}storyboard.vtt`,
      mp4_path: null,
      subtitle_paths: {},
      captions_required: false,
    },
    artifacts: { sign_url: `${callbacks}/artifacts`, local_path: local(prefix.slice(0, -1)) },
    encoding_spec: {
      ...encodingSpec,
      video: { ...video, enabled: false },
      audio: { ...audio, max_tracks: 1, length_seconds: track.lengthSeconds },
      static_mp4: { ...static_mp4, enabled: false },
    } as Record<string, unknown>,
    callbacks: {
      heartbeat_url: `${callbacks}/heartbeat`,
      complete_url: `${callbacks}/complete`,
      fail_url: `${callbacks}/fail`,
      release_url: `${callbacks}/release`,
    },
    early_playback: false,
  };
}

import type * as v from "valibot";
import type { App } from "#app.ts";
import { encodingSpec } from "#media/encoding-spec.ts";
import { storageOf } from "#platform/http/storage.ts";
import type { WorkerContract } from "#protocol/contract.ts";
import { signedFor } from "../lease-urls.ts";
import { sideContract } from "../side-contract.ts";
import type { LeasedTrack } from "./queue.ts";

export const AUDIO_TRACK_JOBS = "/api/v1/audio_track_jobs";
/** Ids of the contracts of tracks: apart from those of jobs, by which workers name directories. */
const FIRST_ID = 1_000_000_000_000;

/** The encode of an added track as a worker receives it: a job with audio alone, as long as the asset, at its times. */
export async function trackContract(
  app: App,
  { row: track, asset, token }: LeasedTrack,
  sharesDisk: boolean,
): Promise<v.InferInput<typeof WorkerContract>> {
  const objects = storageOf(app);
  const prefix = track.prefix as string;
  const sourceKey = track.sourceKey as string;
  const source = await objects.signGet(sourceKey, signedFor(app, `audio:${track.id}`));
  const local = (key: string) => (sharesDisk ? objects.localPath(key) : null);
  const { audio, video, static_mp4 } = encodingSpec;
  return {
    ...sideContract(app, { path: AUDIO_TRACK_JOBS, row: track, token, prefix, local }),
    job: { id: FIRST_ID + track.id, asset_id: asset.id, attempt: track.attempts, profile: "audio" },
    source: {
      url: source.url,
      method: source.method,
      headers: source.headers,
      bytes: track.bytes,
      content_type: "application/octet-stream",
      local_path: local(sourceKey),
      sha256: null,
    },
    outputs: {
      prefix,
      manifest_path: `${prefix}master.m3u8`,
      dash_manifest_path: `${prefix}manifest.mpd`,
      thumbnail_path: `${prefix}thumbnail.jpg`,
      storyboard_path: `${prefix}storyboard.vtt`,
      mp4_path: null,
      subtitle_paths: {},
      words_paths: {},
      captions_required: false,
    },
    encoding_spec: {
      ...encodingSpec,
      video: { ...video, enabled: false },
      audio: {
        ...audio,
        max_tracks: 1,
        length_seconds: track.lengthSeconds,
        ...(track.startSeconds > 0 && { start_seconds: track.startSeconds }),
      },
      static_mp4: { ...static_mp4, enabled: false },
    } as Record<string, unknown>,
  };
}

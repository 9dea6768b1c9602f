import type * as v from "valibot";
import type { App } from "../../../app.ts";
import { storageOf } from "../../../http/storage.ts";
import { iso } from "../../../lib/clock.ts";
import type { WorkerContract } from "../../../protocol/worker.ts";
import { joinContract } from "../join-contract.ts";
import { joinedPart } from "../joined-part.ts";
import { heartbeatSeconds } from "../lease.ts";
import type { LeasedCaptions } from "./queue.ts";

/** Ids of the contracts of captions: apart from those of jobs, by which workers name directories. */
const FIRST_ID = 2_000_000_000_000;
const FILE = "captions.vtt";

/** Where the worker of an attempt writes the captions. */
export const captionsPath = (prefix: string) => `${prefix}${FILE}`;

/** A job of captions as a worker receives it. */
export function captionContract(
  app: App,
  { job, asset, token }: LeasedCaptions,
  { sharesDisk, lane }: { sharesDisk: boolean; lane: string },
): v.InferInput<typeof WorkerContract> {
  const objects = storageOf(app);
  const prefix = job.prefix as string;
  const callbacks = `${app.baseUrl()}/api/v1/caption_jobs/${job.id}`;
  const local = (key: string) => (sharesDisk ? objects.localPath(key) : null);
  return {
    schema_version: 1,
    job: { id: FIRST_ID + job.id, asset_id: asset.id, attempt: job.attempts, profile: "captions" },
    lease: {
      token,
      expires_at: iso(job.leaseExpiresAt ?? 0),
      heartbeat_interval_seconds: heartbeatSeconds(app),
    },
    // Of a job without a source.
    source: { url: "", method: "GET", headers: {}, bytes: 0, content_type: "", local_path: null, sha256: null },
    outputs: {
      prefix,
      manifest_path: `${prefix}master.m3u8`,
      ...{ dash_manifest_path: null, thumbnail_path: null, storyboard_path: null, mp4_path: null },
      ...{ subtitle_paths: {}, captions_required: false },
    },
    artifacts: { sign_url: `${callbacks}/artifacts`, local_path: local(prefix.slice(0, -1)) },
    encoding_spec: {},
    callbacks: {
      heartbeat_url: `${callbacks}/heartbeat`,
      complete_url: `${callbacks}/complete`,
      fail_url: `${callbacks}/fail`,
      release_url: `${callbacks}/release`,
    },
    early_playback: false,
    ...(lane === "captions" && { lane }),
    speech: { language: job.language, path: captionsPath(prefix) },
    join: joinContract([joinedPart(asset)], local),
  };
}

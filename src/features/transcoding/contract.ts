import type * as v from "valibot";
import type { App } from "#app.ts";
import { iso } from "#lib/base";
import { attemptPrefix, directoryOf } from "#model/object-keys.ts";
import { storageOf } from "#platform/http/storage.ts";
import type { WorkerContract } from "#protocol/contract.ts";
import { wordsPathOf } from "#protocol/speech.ts";
import type { Task } from "#protocol/task.ts";
import type { Lane } from "#protocol/worker.ts";
import type { AssetRow, JobRow } from "#storage/db/schema.ts";
import { clipContract } from "./clip-contract.ts";
import { specOfJob } from "./encoding-profile.ts";
import { joinContract } from "./join-contract.ts";
import { heartbeatSeconds, type Lease } from "./lease.ts";
import { type LeaseName, signedFor } from "./lease-urls.ts";
import { attemptOf } from "./schema.ts";
import type { WantedCaptions } from "./source-upload.ts";

/** Metadata that the sender declared. After completion it is what a worker measured, which may be replaced. */
export const announcedSum = ({ sourceSha256, readyAt }: AssetRow) => (readyAt === null ? sourceSha256 : null);

const NO_SOURCE = { url: "", method: "GET", headers: {} };

export type ContractOptions = {
  job: JobRow;
  asset: AssetRow;
  contentType: string;
  /** Size in storage, if known. */
  sourceBytes: number;
  captions: WantedCaptions;
  /** The worker may leave captions to jobs of their own. */
  hasSeparateCaptions?: boolean;
  /** The worker is asked for the closed captions in the video, and for text tracks. */
  readsSourceTexts?: boolean;
  lease: (Lease & { name: LeaseName }) | null;
  sharesDisk: boolean;
  /** The part of the job that is leased. */
  task?: Task | null;
  /** The lane of the claim. */
  lane?: Lane;
  /** Path of the callbacks. */
  base?: string;
};

/** The job as a worker receives it. Without a lease (when a job was only queued) it is informational. */
export async function workerContract(
  app: App,
  {
    job,
    asset,
    contentType,
    sourceBytes,
    captions,
    hasSeparateCaptions = false,
    readsSourceTexts = false,
    lease,
    sharesDisk,
    task = null,
    lane = "main",
    base = "/api/v1/transcoding_jobs",
  }: ContractOptions,
): Promise<v.InferInput<typeof WorkerContract>> {
  const objects = storageOf(app);
  const spec = specOfJob(app, job);
  const prefix = attemptPrefix(job, lease?.attemptId ?? 0);
  // Clips and joined assets have no source of their own.
  const hasSource = !job.clip && !job.joined;
  const urls = signedFor(app, lease?.name ?? null);
  const source = !hasSource ? NO_SOURCE : await objects.signGet(asset.sourceKey, urls);
  const callbacks = `${app.baseUrl()}${base}/${job.id}${task ? `/tasks/${task.id}` : ""}`;
  const local = (key: string) => (sharesDisk && lease ? objects.localPath(key) : null);
  return {
    schema_version: 1,
    job: { id: job.id, asset_id: asset.id, attempt: attemptOf(job), profile: job.profile },
    lease: lease && {
      token: lease.token,
      expires_at: iso(lease.expiresAt),
      heartbeat_interval_seconds: heartbeatSeconds(app),
    },
    source: {
      url: source.url,
      method: source.method,
      headers: source.headers,
      bytes: hasSource ? sourceBytes : 0,
      content_type: contentType,
      local_path: hasSource ? local(asset.sourceKey) : null,
      sha256: announcedSum(asset),
    },
    outputs: {
      prefix,
      manifest_path: `${prefix}master.m3u8`,
      dash_manifest_path: `${prefix}manifest.mpd`,
      thumbnail_path: `${prefix}thumbnail.jpg`,
      storyboard_path: `${prefix}storyboard.vtt`,
      mp4_path: app.config.static_mp4 || spec.static_mp4.enabled ? `${prefix}video.mp4` : null,
      subtitle_paths: Object.fromEntries(
        captions.languages.map((language) => [language, `${prefix}captions/${language}.vtt`]),
      ),
      words_paths: Object.fromEntries(
        captions.languages.map((language) => [language, wordsPathOf(`${prefix}captions/${language}.vtt`)]),
      ),
      captions_required: captions.required,
      ...(hasSeparateCaptions && { separate_captions: true }),
      ...(readsSourceTexts && { read_closed_captions: true, read_text_tracks: true }),
    },
    artifacts: { sign_url: `${callbacks}/artifacts`, local_path: local(directoryOf(prefix)) },
    encoding_spec: spec as Record<string, unknown>,
    callbacks: {
      heartbeat_url: `${callbacks}/heartbeat`,
      complete_url: `${callbacks}/complete`,
      fail_url: `${callbacks}/fail`,
      release_url: `${callbacks}/release`,
      ...(task?.publishes && { publish_url: `${callbacks}/publish` }),
    },
    early_playback: task?.publishes ?? false,
    ...(job.traceparent !== null && { traceparent: job.traceparent }),
    ...(lane !== "main" && { lane }),
    ...(task && { task }),
    ...(job.clip && { clip: await clipContract(objects, asset, job.clip, { ...urls, localPath: local }) }),
    ...(job.joined && { join: joinContract(job.joined, local) }),
  };
}

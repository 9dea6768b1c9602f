import * as v from "valibot";
import type { Rendition } from "../media/manifests.ts";

/** What a server answers to a claim. Unknown fields are let through: the contract may grow. */
export const WorkerContract = v.object({
  schema_version: v.literal(1),
  job: v.object({
    id: v.number(),
    asset_id: v.number(),
    attempt: v.number(),
    profile: v.optional(v.nullable(v.string())),
  }),
  lease: v.object({
    token: v.string(),
    expires_at: v.string(),
    heartbeat_interval_seconds: v.pipe(v.number(), v.minValue(0.05)),
  }),
  source: v.object({
    url: v.string(),
    method: v.optional(v.string(), "GET"),
    headers: v.optional(v.record(v.string(), v.string()), {}),
    bytes: v.nullish(v.number()),
    content_type: v.nullish(v.string()),
    local_path: v.nullish(v.string()),
    /** What its sender says it is; the job fails when it is not. */
    sha256: v.nullish(v.string()),
  }),
  outputs: v.object({
    prefix: v.pipe(v.string(), v.regex(/^[^/].*\/$/)),
    manifest_path: v.string(),
    dash_manifest_path: v.nullish(v.string()),
    thumbnail_path: v.nullish(v.string()),
    storyboard_path: v.nullish(v.string()),
    mp4_path: v.nullish(v.string()),
    subtitle_paths: v.nullish(v.record(v.string(), v.string())),
    captions_required: v.nullish(v.boolean()),
  }),
  artifacts: v.object({ sign_url: v.string(), local_path: v.nullish(v.string()) }),
  encoding_spec: v.nullish(
    v.looseObject({ storyboard: v.nullish(v.looseObject({ enabled: v.nullish(v.boolean()) })) }),
  ),
  callbacks: v.object({
    heartbeat_url: v.string(),
    complete_url: v.string(),
    fail_url: v.string(),
    release_url: v.string(),
    publish_url: v.nullish(v.string()),
  }),
  /** Whether to publish what plays already as soon as one rendition is whole. */
  early_playback: v.optional(v.nullable(v.boolean()), false),
});
export type WorkerContract = v.InferOutput<typeof WorkerContract>;

export const HeartbeatAnswer = v.object({
  status: v.string(),
  lease_expires_at: v.nullish(v.string()),
  cancel_requested: v.optional(v.boolean(), false),
});
export type HeartbeatAnswer = v.InferOutput<typeof HeartbeatAnswer>;

export const SignedArtifacts = v.array(
  v.object({
    path: v.string(),
    url: v.string(),
    method: v.optional(v.string(), "PUT"),
    headers: v.optional(v.record(v.string(), v.string()), {}),
  }),
);
export type SignedArtifact = v.InferOutput<typeof SignedArtifacts>[number];

export type Stage = "downloading" | "probing" | "encoding" | "captioning" | "publishing";

/** The body of `complete`; all paths are whole storage keys. */
export type Completion = {
  manifest_path: string;
  dash_manifest_path: string | null;
  thumbnail_path: string | null;
  storyboard_path: string | null;
  mp4_path: string | null;
  subtitle_paths: Record<string, string>;
  /** By language, for those that are not there. */
  caption_errors: Record<string, string>;
  media: {
    duration_seconds: number;
    width: number | null;
    height: number | null;
    frame_rate: number | null;
    bytes: number;
    source_sha256?: string;
    /** Here their playlists are whole keys, too. */
    renditions: Rendition[];
  };
};

export type Failure = { code: string; message: string; retryable: boolean; log_tail: string };

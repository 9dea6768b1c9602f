import * as v from "valibot";
import { Clip } from "./clip.ts";
import { SignedHeaders } from "./fields.ts";
import { Join } from "./join.ts";
import {
  AssetId,
  AttemptField,
  BytesField,
  ContentType,
  DashManifestPath,
  ExpiresAt,
  LeaseExpiresAt,
  LocalPath,
  ManifestPath,
  MethodField,
  PathField,
  PrefixField,
  ProfileField,
  RecordId,
  SchemaVersion,
  StatusField,
  ThumbnailPath,
  TokenField,
  UrlField,
} from "./record-fields.ts";
import { SpeechWork } from "./speech.ts";
import { Task } from "./task.ts";

/** What the server sends a worker: the contract of a task, URLs for its results, and answers to heartbeats. */

const SignedCall = {
  url: UrlField,
  method: MethodField,
  headers: v.pipe(SignedHeaders, v.description("Headers that the request must have")),
};
export const SignedArtifacts = v.array(v.object({ path: PathField, ...SignedCall }));

const contract = v.object({
  schema_version: SchemaVersion,
  job: v.pipe(
    v.object({ id: RecordId, asset_id: AssetId, attempt: AttemptField, profile: ProfileField }),
    v.description("The job"),
  ),
  lease: v.pipe(
    v.nullable(
      v.object({
        token: TokenField,
        expires_at: ExpiresAt,
        heartbeat_interval_seconds: v.pipe(v.number(), v.description("Seconds between two heartbeats")),
      }),
    ),
    v.description("The lease of the attempt"),
  ),
  source: v.pipe(
    v.object({
      ...SignedCall,
      bytes: BytesField,
      content_type: ContentType,
      local_path: v.nullable(LocalPath),
      sha256: v.pipe(v.nullable(v.string()), v.description("As announced by the sender")),
    }),
    v.description("Where the worker reads the source"),
  ),
  outputs: v.pipe(
    v.object({
      prefix: PrefixField,
      manifest_path: ManifestPath,
      dash_manifest_path: v.nullable(DashManifestPath),
      thumbnail_path: v.nullable(ThumbnailPath),
      storyboard_path: v.pipe(v.nullable(v.string()), v.description("Optional")),
      mp4_path: v.pipe(
        v.nullable(v.string()),
        v.description("One file with its index in front; null when none is requested"),
      ),
      subtitle_paths: v.pipe(v.record(v.string(), v.string()), v.description("Captions to create, by language")),
      words_paths: v.pipe(
        v.record(v.string(), v.string()),
        v.description("Times of the words of captions, by language; optional"),
      ),
      captions_required: v.pipe(v.boolean(), v.description("Whether the job fails if one of them cannot be created")),
      separate_captions: v.optional(
        v.pipe(
          v.boolean(),
          v.description(
            "Requested captions may be recognized by jobs of their own; a completion without some of them has this field too",
          ),
        ),
      ),
      read_closed_captions: v.optional(
        v.pipe(v.boolean(), v.description("The closed captions in the video are wanted as texts, if it has some")),
      ),
      read_text_tracks: v.optional(
        v.pipe(v.boolean(), v.description("The text tracks of the source are wanted, as entries of `closed_captions`")),
      ),
    }),
    v.description("Where the results go"),
  ),
  artifacts: v.pipe(
    v.object({
      sign_url: v.pipe(v.string(), v.description("URL that returns presigned URLs for results")),
      local_path: v.nullable(LocalPath),
    }),
    v.description("How URLs for results are requested"),
  ),
  encoding_spec: v.pipe(v.record(v.string(), v.unknown()), v.description("How the source is to be encoded")),
  callbacks: v.pipe(
    v.object({
      heartbeat_url: v.pipe(v.string(), v.description("URL of the heartbeat")),
      complete_url: v.pipe(v.string(), v.description("URL of the call that completes the job")),
      fail_url: v.pipe(v.string(), v.description("URL of the call that fails the attempt")),
      release_url: v.pipe(v.string(), v.description("URL of the call that returns the job to the queue")),
      publish_url: v.optional(
        v.pipe(v.string(), v.description("Of a task that publishes before the job is complete, with early_playback")),
      ),
    }),
    v.description("URLs of the worker's calls"),
  ),
  early_playback: v.pipe(
    v.boolean(),
    v.description("Whether this is a task that publishes before the job is complete"),
  ),
  traceparent: v.optional(
    v.pipe(
      v.string(),
      v.description("W3C trace context: send it with `complete`, `publish` and `fail`, or that of your span"),
    ),
  ),
  lane: v.optional(
    v.pipe(v.picklist(["light", "urgent", "captions"]), v.description("Of the claim, unless it was `main`")),
  ),
  task: v.optional(v.pipe(v.nullable(Task), v.description("Set when a part of the job is leased; see `kind`"))),
  clip: v.optional(
    v.pipe(
      v.nullable(Clip),
      v.description("Set when an exact clip is to be cut, for workers with `capabilities.clips`"),
    ),
  ),
  join: v.optional(
    v.pipe(v.nullable(Join), v.description("Set when assets are to be joined, for workers with `capabilities.joins`")),
  ),
  speech: v.optional(
    v.pipe(
      v.nullable(SpeechWork),
      v.description(
        "Set when the speech in the media of `join` is to be recognized, for workers in the lane `captions`",
      ),
    ),
  ),
});
/** Everything that a worker needs for one job. Keys are full object keys. */
export const WorkerContract = v.pipe(contract, v.title("WorkerContract"));
export const FencedContract = v.pipe(
  v.object({
    ...contract.entries,
    attempt_id: v.pipe(v.number(), v.description("Send it with every callback in X-SVC-JOB-ATTEMPT-ID")),
  }),
  v.title("FencedWorkerContract"),
);

/** The server narrows the status to those that it has; a newer server may have more. */
export const HeartbeatAnswer = v.object({
  status: StatusField,
  lease_expires_at: v.nullable(LeaseExpiresAt),
  cancel_requested: v.pipe(v.boolean(), v.description("Whether the worker must stop")),
  yield_requested: v.pipe(
    v.optional(v.boolean()),
    v.description("A viewer waits for a segment that this chunk reaches late: the worker may end it early"),
  ),
  source_url: v.optional(
    v.pipe(
      v.string(),
      v.description("Replaces the URL of the source, which expires; only where storage serves it itself"),
    ),
  ),
});

import * as v from "valibot";
import type { VrTags } from "#lib/codecs";
import type { Warning } from "#model/warnings.ts";
import { Clip, type ClipResult } from "./clip.ts";
import * as sent from "./contract.ts";
import { Join } from "./join.ts";
import type { ClosedCaptions } from "./source-texts.ts";
import { type PartSpeech, type PartTimes, type SpeechResult, SpeechWork } from "./speech.ts";
import { Task } from "./task.ts";
import type * as accepted from "./worker.ts";
import type { STAGES } from "./worker.ts";

/**
 * The worker API as a worker uses it. The server may have another version: unknown fields of its responses are ignored,
 * and fields that a worker can do without may be missing.
 */

/** These fields of `entries`, which may also be null or missing. */
function optional<E extends v.ObjectEntries, N extends keyof E & string>(entries: E, ...names: N[]) {
  const loose = names.map((name) => [name, v.nullish(entries[name] as E[N])]);
  return Object.fromEntries(loose) as { [Name in N]: v.NullishSchema<E[Name], undefined> };
}

const { job, source, outputs, artifacts, callbacks, ...contract } = sent.WorkerContract.entries;

export const WorkerContract = v.object({
  schema_version: contract.schema_version,
  job: v.object({ ...job.entries, ...optional(job.entries, "profile") }),
  lease: v.object({
    ...contract.lease.wrapped.entries,
    expires_at: v.string(),
    heartbeat_interval_seconds: v.pipe(v.number(), v.minValue(0.05)),
  }),
  source: v.object({
    ...source.entries,
    method: v.optional(source.entries.method, "GET"),
    headers: v.optional(source.entries.headers, {}),
    ...optional(source.entries, "bytes", "content_type", "local_path", "sha256"),
  }),
  outputs: v.object({
    ...outputs.entries,
    prefix: v.pipe(v.string(), v.regex(/^[^/].*\/$/)),
    ...optional(outputs.entries, "dash_manifest_path", "thumbnail_path", "storyboard_path", "mp4_path"),
    ...optional(outputs.entries, "subtitle_paths", "words_paths", "captions_required", "separate_captions"),
    ...optional(outputs.entries, "read_closed_captions", "read_text_tracks"),
  }),
  artifacts: v.object({ ...artifacts.entries, ...optional(artifacts.entries, "local_path") }),
  /** Validated when it is used: another worker may support one that this worker does not. */
  encoding_spec: v.nullish(v.looseObject({})),
  callbacks,
  early_playback: v.optional(v.nullable(contract.early_playback), false),
  lane: v.nullish(v.string()),
  traceparent: v.nullish(v.string()),
  task: v.nullish(Task),
  clip: v.nullish(Clip),
  join: v.nullish(Join),
  speech: v.nullish(SpeechWork),
});
export type WorkerContract = v.InferOutput<typeof WorkerContract>;

export const HeartbeatAnswer = v.object({
  ...sent.HeartbeatAnswer.entries,
  lease_expires_at: v.nullish(v.string()),
  cancel_requested: v.optional(sent.HeartbeatAnswer.entries.cancel_requested, false),
});
export type HeartbeatAnswer = v.InferOutput<typeof HeartbeatAnswer>;

const { entries: signed } = sent.SignedArtifacts.item;
export const SignedArtifacts = v.array(
  v.object({ ...signed, method: v.optional(signed.method, "PUT"), headers: v.optional(signed.headers, {}) }),
);
export type SignedArtifact = v.InferOutput<typeof SignedArtifacts>[number];

export type Stage = (typeof STAGES)[number];

/** A worker states every field, also where the server has a default. */
type Complete<T> = T extends readonly (infer Item)[]
  ? Complete<Item>[]
  : T extends object
    ? { [Name in keyof T]-?: Complete<Exclude<T[Name], undefined>> }
    : T;
type ServerCompletion = Complete<v.InferInput<typeof accepted.Completion>>;

/** The body of `complete` and `publish`; all paths are full object keys. */
export type Completion = Omit<ServerCompletion, "media" | "clip" | "separate_captions" | "closed_captions"> & {
  separate_captions?: boolean;
  closed_captions?: v.InferInput<typeof ClosedCaptions>;
  /** `bytes` is not in the server's schema, which ignores it. */
  media: Omit<ServerCompletion["media"], "source_sha256" | "warnings" | keyof VrTags> &
    Partial<VrTags> & { bytes: number; source_sha256?: string; warnings?: Warning[] };
  clip?: ClipResult;
};
/** The body of `complete` of a task. */
export type TaskResult = Partial<Omit<Completion, "media">> & v.InferInput<typeof accepted.TaskCompletion>;
/** The body of `complete` of a job that recognized speech. */
export type SpeechCompletion = { speech: SpeechResult } | { parts: readonly PartTimes[] } | { speech: PartSpeech };
export type Failure = Complete<v.InferInput<typeof accepted.Failure>>;

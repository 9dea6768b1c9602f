import * as v from "valibot";
import { HDR_FORMATS, VR_PROJECTIONS, VR_STEREO } from "#lib/codecs";
import { ClipResult } from "./clip.ts";
import { describedAs, Key, Sha256, Shown, ShownLines, Text } from "./fields.ts";
import {
  AverageBandwidth,
  BandwidthField,
  CodecsField,
  CodeField,
  DashManifestPath,
  DurationSeconds,
  FrameRateField,
  HeightField,
  ManifestPath,
  MessageField,
  Mp4Path,
  NameField,
  PlaylistPath,
  ProgressField,
  StageField,
  StoryboardPath,
  ThumbnailPath,
  WaitSeconds,
  WidthField,
  WorkerIdField,
} from "./record-fields.ts";
import { ClosedCaptions } from "./source-texts.ts";
import { MAX_FRAME_RATE, MAX_MEDIA_SECONDS, PlanResult, WrittenRenditions } from "./task.ts";
import { ReportedWarnings } from "./warnings.ts";

/** What workers send, as the server documents and validates it; contract.ts has what they receive, and worker-client.ts how they read that. */

const WorkerId = Shown(200);
const Version = Shown(100, "Of the worker's program, for the list of workers");
/** The last 50 lines of 500 characters. */
const MAX_LOG_CHARS = 32_768;
const Lane = v.pipe(
  v.picklist(["main", "light", "urgent", "captions"], "must be main, light, urgent or captions"),
  v.description(
    "For more claims next to a long task. `light`: only tasks that use one core, and urgent ones; `urgent`: only those that a viewer has requested; `captions`: only jobs that recognize speech",
  ),
);
export type Lane = v.InferOutput<typeof Lane>;
/** `wait_seconds` holds the request until there is a job, so that an idle worker need not poll. */
export const Claim = v.object({
  worker_id: describedAs(WorkerIdField, v.optional(WorkerId)),
  version: v.optional(Version),
  capabilities: v.pipe(
    v.optional(
      v.looseObject({
        local_proof: v.pipe(v.optional(Text(200)), v.description("Proves that the worker reads the server's disk")),
        tasks: v.optional(
          v.pipe(
            v.number(),
            v.description("1: the worker leases tasks, parts of a job; 2: also those of HEVC and AV1"),
          ),
        ),
        clips: v.optional(
          v.pipe(v.number(), v.description("2: the worker leases jobs that cut exact clips; 1: only those of H.264")),
        ),
        captions: v.optional(
          v.pipe(
            v.number(),
            v.description("1: the worker leases jobs that recognize speech; 2: also parts of long ones"),
          ),
        ),
        separate_captions: v.optional(
          v.pipe(
            v.boolean(),
            v.description(
              "Where `outputs.separate_captions` is true, it may complete without captions: they become jobs of their own",
            ),
          ),
        ),
        speech_model: v.optional(
          v.pipe(
            v.boolean(),
            v.description("It recognizes speech with the server's model, and leases no such job without one"),
          ),
        ),
        joins: v.optional(v.pipe(v.number(), v.description("1: the worker leases jobs that join assets"))),
      }),
    ),
    v.description("What the worker can do"),
  ),
  wait_seconds: v.optional(WaitSeconds),
  lane: v.optional(Lane, "main"),
});
export type Claim = v.InferInput<typeof Claim>;

export const Heartbeat = v.object({
  progress: describedAs(
    ProgressField,
    v.optional(
      v.pipe(v.number("must be a number"), v.minValue(0, "must be at least 0"), v.maxValue(100, "must be at most 100")),
    ),
  ),
  worker_id: describedAs(WorkerIdField, v.optional(WorkerId)),
  stage: describedAs(StageField, v.optional(Shown(100))),
  log_tail: v.optional(
    v.pipe(ShownLines(MAX_LOG_CHARS), v.description("The last lines of the log, when they have changed")),
  ),
});
export type Heartbeat = v.InferInput<typeof Heartbeat>;

/**
 * A worker may be hostile: what it reports is counted, multiplied and shown. Each limit is above anything that a source can
 * have. In milliseconds the longest duration fits in 32 bits.
 */
const amount = (max: number) =>
  v.pipe(
    v.number("must be a number"),
    v.minValue(0, "must not be negative"),
    v.maxValue(max, `must be at most ${max}`),
  );
const Seconds = amount(MAX_MEDIA_SECONDS);
const Pixels = amount(100_000);
const FrameRate = amount(MAX_FRAME_RATE);
const Bandwidth = amount(1_000_000_000_000);
const Bytes = amount(Number.MAX_SAFE_INTEGER);
const Rendition = v.object({
  name: describedAs(NameField, Shown(100)),
  width: describedAs(WidthField, v.nullish(Pixels, null)),
  height: describedAs(HeightField, v.nullish(Pixels, null)),
  bandwidth: describedAs(BandwidthField, Bandwidth),
  average_bandwidth: describedAs(AverageBandwidth, v.nullish(Bandwidth)),
  codecs: describedAs(CodecsField, Shown(200)),
  frame_rate: describedAs(FrameRateField, v.nullish(FrameRate)),
  hdr: v.pipe(v.nullish(v.picklist(HDR_FORMATS)), v.description("Null: standard dynamic range")),
  bytes: v.pipe(v.nullish(Bytes), v.description("Of its segments and init segment")),
  score: v.pipe(
    v.nullish(amount(100)),
    v.description("Estimated quality, 0 to 100, where the renditions were chosen for the source"),
  ),
  playlist_path: describedAs(PlaylistPath, Key),
});

const ofSource = <const Values extends readonly string[]>(values: Values) =>
  v.pipe(
    v.nullish(v.picklist(values)),
    v.description("As the source states it; becomes the tag of this name, unless the asset has one"),
  );

/** What a worker does, in this order; others may report other stages. */
export const STAGES = ["downloading", "probing", "encoding", "captioning", "publishing"] as const;

const MAX_CAPTIONS = 100;
/**
 * All paths are full object keys. Missing fields are reported as `invalid_transcoding_result` by the handler, so none
 * is required here.
 */
export const Completion = v.object({
  manifest_path: describedAs(ManifestPath, v.nullish(Key)),
  dash_manifest_path: describedAs(DashManifestPath, v.nullish(Key)),
  thumbnail_path: describedAs(ThumbnailPath, v.nullish(Key)),
  storyboard_path: describedAs(StoryboardPath, v.nullish(Key)),
  mp4_path: describedAs(Mp4Path, v.nullish(Key)),
  subtitle_paths: v.optional(
    v.pipe(
      v.record(Text(100), Key),
      v.maxEntries(MAX_CAPTIONS, `must have at most ${MAX_CAPTIONS} languages`),
      v.description("WebVTT by language: those of the contract, and optionally others"),
    ),
    {},
  ),
  caption_errors: v.optional(
    v.pipe(
      v.record(Text(100), Shown(500)),
      v.maxEntries(MAX_CAPTIONS, `must have at most ${MAX_CAPTIONS} languages`),
      v.description("Why requested captions could not be created, by language; only where they are not required"),
    ),
    {},
  ),
  separate_captions: v.pipe(
    v.optional(v.boolean("must be true or false")),
    v.description("As in `outputs` of the contract: requested captions that are in neither are recognized afterwards"),
  ),
  closed_captions: v.optional(
    v.pipe(
      ClosedCaptions,
      v.description("Closed captions in the video and text tracks, where `outputs` asks for them"),
    ),
  ),
  media: v.pipe(
    v.optional(
      v.object({
        duration_seconds: describedAs(DurationSeconds, v.optional(Seconds)),
        width: describedAs(WidthField, v.nullish(Pixels)),
        height: describedAs(HeightField, v.nullish(Pixels)),
        frame_rate: describedAs(FrameRateField, v.nullish(FrameRate)),
        vr_projection: ofSource(VR_PROJECTIONS),
        vr_stereo: ofSource(VR_STEREO),
        source_sha256: v.nullish(
          v.pipe(
            Sha256,
            v.description(
              "Of the source as the worker read it; one that differs from what was announced fails the job",
            ),
          ),
        ),
        warnings: v.pipe(
          v.nullish(ReportedWarnings),
          v.description("What of the source is left out; becomes the asset's `warnings`"),
        ),
        renditions: v.pipe(
          v.optional(v.pipe(v.array(Rendition), v.maxLength(100))),
          v.description("Variants of the video, by height"),
        ),
        audio_renditions: v.pipe(
          v.optional(v.pipe(v.array(Rendition), v.maxLength(100))),
          v.description("Renditions of audio that `renditions` do not contain"),
        ),
      }),
    ),
    v.description("Properties of the encoded media"),
  ),
  clip: v.pipe(v.nullish(ClipResult), v.description("The result of a job with a `clip`")),
});

/** The result of a task: `plan` of a `plan` task, `written` of `chunk` and `audio`, a completion of the others. */
export const TaskCompletion = v.object({
  ...Completion.entries,
  plan: v.pipe(v.nullish(PlanResult), v.description("The result of a `plan` task")),
  written: v.pipe(v.nullish(WrittenRenditions), v.description("The result of a `chunk` or `audio` task")),
  partial: v.pipe(
    v.optional(v.boolean("must be true or false")),
    v.description(
      "Whether `written` has only the first segments of a chunk, after `yield_requested`: the rest is queued again",
    ),
  ),
});

export const Failure = v.object({
  code: describedAs(CodeField, v.optional(Shown(100), "transcoding_failed")),
  message: describedAs(MessageField, v.optional(Shown(2000), "Transcoding failed.")),
  retryable: v.pipe(
    v.optional(v.boolean("must be true or false"), true),
    v.description("Whether another attempt may succeed"),
  ),
  log_tail: v.pipe(v.optional(ShownLines(65_536)), v.description("The end of the log of a failed attempt")),
});

export const SignArtifacts = v.object({
  paths: v.pipe(
    v.array(Key, "must be an array of paths"),
    v.minLength(1),
    v.maxLength(1000, "at most 1000 at a time"),
    v.description("Paths of the objects"),
  ),
  method: v.optional(
    v.pipe(
      v.picklist(["PUT", "GET"], "must be PUT or GET"),
      v.description("GET: to read what other tasks have written"),
    ),
    "PUT",
  ),
});
export type SignArtifacts = v.InferInput<typeof SignArtifacts>;

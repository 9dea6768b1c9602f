import * as v from "valibot";
import { SUBTITLE_SOURCES } from "#model/enums.ts";
import { eventTextSamples, eventTexts } from "#protocol/asset-fields.ts";
import { describedAs } from "#protocol/fields.ts";
import {
  AssetId,
  AttemptField,
  BytesReceived,
  ChannelField,
  ChannelId,
  CodeField,
  ErrorField,
  ExternalIdField,
  FilenameField,
  FinishedAt,
  KindField,
  LabelField,
  LanguageField,
  MessageField,
  NameField,
  PlaybackStatusField,
  SourceField,
  StartedAt,
  SubtitleId,
  TenantIdField,
  TrackId,
  UploadId,
  WorkerIdField,
} from "#protocol/record-fields.ts";
import { Warning } from "#protocol/warnings.ts";

/** `isDefault`: whether endpoints receive it that name no events. */
type Definition<Data> = {
  description: string;
  schema: v.GenericSchema<unknown, Data>;
  sample: Data;
  isDefault: boolean;
};

const define = <Schema extends v.GenericSchema<unknown>>(
  description: string,
  schema: Schema,
  sample: v.InferOutput<Schema>,
  { isDefault = true } = {},
): Definition<v.InferOutput<Schema>> => ({ description, schema: schema as never, sample, isDefault });

const UPLOAD = {
  upload_id: describedAs(UploadId, v.number()),
  asset_id: describedAs(AssetId, v.string()),
  external_id: ExternalIdField,
  filename: FilenameField,
};
const JOB = {
  job_id: v.pipe(v.number(), v.description("Id of the job")),
  asset_id: describedAs(AssetId, v.string()),
  attempt: AttemptField,
  worker_id: v.nullable(WorkerIdField),
};
const ErrorCode = v.pipe(v.null(), v.description("Code of the error; null without one"));
const ErrorMessage = v.pipe(v.null(), v.description("Message of the error; null without one"));
const WillRetry = v.pipe(v.null(), v.description("Whether another attempt follows"));
const NO_ERROR = { error_code: ErrorCode, error_message: ErrorMessage, will_retry: WillRetry };
const ASSET = {
  asset_id: describedAs(AssetId, v.string()),
  external_id: ExternalIdField,
  ...eventTexts,
  playback_status: PlaybackStatusField,
};
const AssetError = v.nullable(v.object({ code: CodeField, message: v.nullable(MessageField) }));
const Asset = v.object({
  ...ASSET,
  playback_url: v.pipe(v.nullable(v.string()), v.description("URL of the HLS master playlist, without a token")),
  error: describedAs(ErrorField, AssetError),
  warnings: v.pipe(v.array(Warning), v.description("Problems that do not prevent the operation")),
});

const LIVE = { channel_id: ChannelId, channel: ChannelField, started_at: describedAs(StartedAt, v.string()) };

const described = <S extends v.GenericSchema>(schema: S, text: string) => v.pipe(schema, v.description(text));

const CHANNEL = { channel_id: ChannelId, channel: ChannelField };

const TARGET = {
  ...CHANNEL,
  target_id: described(v.number(), "Id of the simulcast target"),
  target: described(v.string(), "Name of the simulcast target"),
};

const upload = { upload_id: 0, asset_id: "0", external_id: "vid_0000000000000000000000", filename: "test.mp4" };
const job = { job_id: 0, asset_id: "0", attempt: 1, worker_id: "worker-1" };
const noError = { error_code: null, error_message: null, will_retry: null };
const live = { channel_id: 0, channel: "test", started_at: "2026-11-20T09:00:00.000Z" };
const channel = { channel_id: 0, channel: "test" };
const target = { ...channel, target_id: 0, target: "live.example.com" };
const asset = { asset_id: "0", external_id: "vid_0000000000000000000000", ...eventTextSamples, warnings: [] };

/**
 * Every event type that a tenant can subscribe to: when it is emitted, the schema of its `data`, and a sample for test
 * deliveries (no resource has the id 0). The types of `emit`, the OpenAPI document and the table in docs/webhooks.md
 * are derived from it.
 */
export const EVENTS = {
  "video.upload.completed": define(
    "A source is complete in storage",
    v.object({ ...UPLOAD, bytes_received: describedAs(BytesReceived, v.number()) }),
    { ...upload, bytes_received: 1 },
  ),
  "video.upload.failed": define(
    "An upload expired or was aborted, or its source could not be fetched",
    v.object({ ...UPLOAD, bytes_received: describedAs(BytesReceived, v.null()) }),
    { ...upload, bytes_received: null },
  ),
  "video.job.queued": define(
    "A job is queued: a new one, or again after an attempt or a retry",
    v.object({ ...JOB, ...NO_ERROR }),
    { ...job, worker_id: null, ...noError },
  ),
  "video.job.started": define("A worker leased a job", v.object({ ...JOB, ...NO_ERROR }), { ...job, ...noError }),
  "video.job.failed": define(
    "An attempt failed; `will_retry` says whether the job is queued again",
    v.object({
      ...JOB,
      error_code: describedAs(ErrorCode, v.nullable(v.string())),
      error_message: describedAs(ErrorMessage, v.nullable(v.string())),
      will_retry: describedAs(WillRetry, v.boolean()),
    }),
    { ...job, error_code: "test", error_message: "Test event", will_retry: true },
  ),
  "video.asset.ready": define("An asset can be played", Asset, {
    ...asset,
    playback_status: "ready",
    playback_url: "https://video.example.com/media/vid_0000000000000000000000/master.m3u8",
    error: null,
  }),
  "video.asset.encoded": define(
    "An asset is encoded completely; with early playback, after `video.asset.ready`. Only for endpoints that name it",
    Asset,
    {
      ...asset,
      playback_status: "ready",
      playback_url: "https://video.example.com/media/vid_0000000000000000000000/master.m3u8",
      error: null,
    },
    { isDefault: false },
  ),
  "video.asset.errored": define("An asset failed and cannot be played", Asset, {
    ...asset,
    playback_status: "errored",
    playback_url: null,
    error: { code: "test", message: "Test event" },
  }),
  "video.asset.deleted": define("An asset was deleted", Asset, {
    ...asset,
    playback_status: "ready",
    playback_url: null,
    error: null,
  }),
  "video.subtitle.ready": define(
    "A subtitle is available: uploaded, translated, transcribed or replaced",
    v.object({
      asset_id: describedAs(AssetId, v.string()),
      subtitle_id: SubtitleId,
      language: LanguageField,
      label: LabelField,
      source: describedAs(SourceField, v.picklist(SUBTITLE_SOURCES)),
    }),
    { asset_id: "0", subtitle_id: 0, language: "en", label: "English", source: "upload" },
  ),
  "video.subtitle.errored": define(
    "A subtitle could not be generated or translated. Only for endpoints that name it",
    v.object({
      asset_id: describedAs(AssetId, v.string()),
      subtitle_id: SubtitleId,
      language: LanguageField,
      label: LabelField,
      source: describedAs(SourceField, v.picklist(SUBTITLE_SOURCES)),
      error: describedAs(ErrorField, v.object({ code: CodeField, message: MessageField })),
    }),
    {
      asset_id: "0",
      subtitle_id: 0,
      language: "en",
      label: "English",
      source: "auto",
      error: { code: "test", message: "Test event" },
    },
    { isDefault: false },
  ),
  "video.track.ready": define(
    "A track becomes ready",
    v.object({ asset_id: describedAs(AssetId, v.string()), track_id: TrackId, kind: KindField, name: NameField }),
    { asset_id: "0", track_id: 0, kind: "chapter", name: "default" },
  ),
  "live.stream.started": define(
    "A publisher has started a stream on a channel. Only for endpoints that name it",
    v.object(LIVE),
    live,
    { isDefault: false },
  ),
  "live.stream.ended": define(
    "A stream has ended. Only for endpoints that name it",
    v.object({ ...LIVE, ended_at: describedAs(FinishedAt, v.string()) }),
    { ...live, ended_at: "2026-11-20T10:00:00.000Z" },
    { isDefault: false },
  ),
  "live.recording.ready": define(
    "The recording of a stream is an asset that can be played. Only for endpoints that name it",
    v.object({ ...LIVE, ended_at: describedAs(FinishedAt, v.string()), asset_id: describedAs(AssetId, v.string()) }),
    { ...live, ended_at: "2026-11-20T10:00:00.000Z", asset_id: "0" },
    { isDefault: false },
  ),
  "live.channel.created": define(
    "A channel has been created. Only for endpoints that name it",
    v.object(CHANNEL),
    channel,
    { isDefault: false },
  ),
  "live.channel.enabled": define(
    "A channel accepts publishers again. Only for endpoints that name it",
    v.object(CHANNEL),
    channel,
    { isDefault: false },
  ),
  "live.channel.disabled": define(
    "A channel accepts no publishers any more. Only for endpoints that name it",
    v.object(CHANNEL),
    channel,
    { isDefault: false },
  ),
  "live.channel.revoked": define(
    "A channel has been revoked. Only for endpoints that name it",
    v.object(CHANNEL),
    channel,
    { isDefault: false },
  ),
  "live.target.failed": define(
    "A simulcast target refuses the stream, or cannot be reached; once until it accepts the stream. Only for endpoints that name it",
    v.object({
      ...TARGET,
      failed_at: described(v.string(), "Time of the failure"),
      error: described(v.string(), "What the target answered, or why it could not be reached"),
    }),
    { ...target, failed_at: "2026-11-20T09:00:00.000Z", error: "The connection failed (ECONNREFUSED)." },
    { isDefault: false },
  ),
  "live.target.recovered": define(
    "A simulcast target accepts the stream after it has failed. Only for endpoints that name it",
    v.object({ ...TARGET, recovered_at: described(v.string(), "Time at which the target accepted the stream") }),
    { ...target, recovered_at: "2026-11-20T09:01:00.000Z" },
    { isDefault: false },
  ),
  "tenant.traffic.anomaly": define(
    "An hour's plays deviate from the usual number of that hour",
    v.object({
      tenant_id: TenantIdField,
      metric: v.pipe(v.string(), v.description("The figure that deviates")),
      window_start: v.pipe(v.string(), v.description("Start of the hour")),
      window_end: v.pipe(v.string(), v.description("End of the hour")),
      baseline: v.pipe(v.number(), v.description("The usual number in this hour")),
      observed: v.pipe(v.number(), v.description("The number in this hour")),
      ratio: v.pipe(v.nullable(v.number()), v.description("null when the baseline is 0")),
    }),
    {
      tenant_id: 0,
      metric: "play_count",
      window_start: "2026-11-20T09:00:00.000Z",
      window_end: "2026-11-20T10:00:00.000Z",
      baseline: 100,
      observed: 1000,
      ratio: 10,
    },
  ),
};

export type EventType = keyof typeof EVENTS;
/** The `data` of an event. */
export type EventData<Type extends EventType> = (typeof EVENTS)[Type]["sample"];
export const EVENT_TYPES = Object.keys(EVENTS) as [EventType, ...EventType[]];
/** Those that an endpoint receives which names no events: a receiver of all sees nothing new. */
export const DEFAULT_EVENT_TYPES = EVENT_TYPES.filter((type) => EVENTS[type].isDefault);

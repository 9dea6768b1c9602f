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

/**
 * `isDefault`: whether endpoints receive it that name no events. `isStored`: whether it is stored, and in the event stream, where no
 * endpoint names it.
 */
type Definition<Data> = {
  description: string;
  schema: v.GenericSchema<unknown, Data>;
  sample: Data;
  isDefault: boolean;
  isStored: boolean;
};

const define = <Schema extends v.GenericSchema<unknown>>(
  description: string,
  schema: Schema,
  sample: v.InferOutput<Schema>,
  { isDefault = true, isStored = true } = {},
): Definition<v.InferOutput<Schema>> => ({ description, schema: schema as never, sample, isDefault, isStored });

/** An event that many changes cause and few receivers need. */
const defineDetail = <Schema extends v.GenericSchema<unknown>>(
  description: string,
  schema: Schema,
  sample: v.InferOutput<Schema>,
) =>
  define(`${description}. Stored and sent only where an endpoint names it`, schema, sample, {
    isDefault: false,
    isStored: false,
  });

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

const SUBTITLE = {
  asset_id: describedAs(AssetId, v.string()),
  subtitle_id: SubtitleId,
  language: LanguageField,
  label: LabelField,
  source: describedAs(SourceField, v.picklist(SUBTITLE_SOURCES)),
};
const Failure = describedAs(ErrorField, v.object({ code: CodeField, message: MessageField }));
const AUDIO_TRACK = {
  asset_id: describedAs(AssetId, v.string()),
  track_id: TrackId,
  language: v.nullable(LanguageField),
  name: NameField,
};
const RENDITION = {
  asset_id: describedAs(AssetId, v.string()),
  static_rendition_id: v.pipe(v.number(), v.description("Id of the static rendition")),
  name: NameField,
};
const OF_ASSET = { asset_id: describedAs(AssetId, v.string()) };
const DIRECT_UPLOAD = { direct_upload: v.pipe(v.string(), v.description("Id of the direct upload in Mux's API")) };

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
const readyAsset = {
  ...asset,
  playback_status: "ready",
  playback_url: "https://video.example.com/media/vid_0000000000000000000000/master.m3u8",
  error: null,
} as const;
const failure = { code: "test", message: "Test event" };
const subtitle = { asset_id: "0", subtitle_id: 0, language: "en", label: "English", source: "upload" } as const;
const audioTrack = { asset_id: "0", track_id: 0, language: "en", name: "English" };
const rendition = { asset_id: "0", static_rendition_id: 0, name: "highest" };
const ofAsset = { asset_id: "0" };
const directUpload = { direct_upload: "test" };

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
  "video.direct_upload.created": defineDetail(
    "A direct upload was created by Mux's API",
    v.object(DIRECT_UPLOAD),
    directUpload,
  ),
  "video.direct_upload.canceled": defineDetail(
    "A direct upload was canceled by Mux's API",
    v.object(DIRECT_UPLOAD),
    directUpload,
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
  "video.asset.created": defineDetail("An asset was created; its source may not be there yet", Asset, {
    ...asset,
    playback_status: "draft",
    playback_url: null,
    error: null,
  }),
  "video.asset.updated": defineDetail(
    "Fields, tags, the poster or the playback ids of an asset were changed by a client",
    Asset,
    readyAsset,
  ),
  "video.asset.ready": define("An asset can be played", Asset, readyAsset),
  "video.asset.encoded": define(
    "An asset is encoded completely; with early playback, after `video.asset.ready`. Only for endpoints that name it",
    Asset,
    readyAsset,
    { isDefault: false },
  ),
  "video.asset.errored": define("An asset failed and cannot be played", Asset, {
    ...asset,
    playback_status: "errored",
    playback_url: null,
    error: failure,
  }),
  "video.asset.deleted": define("An asset was deleted", Asset, {
    ...asset,
    playback_status: "ready",
    playback_url: null,
    error: null,
  }),
  "video.subtitle.created": defineDetail(
    "A subtitle is added: it is ready at once, or its text is being created",
    v.object(SUBTITLE),
    subtitle,
  ),
  "video.subtitle.ready": define(
    "A subtitle is available: uploaded, translated, transcribed or replaced",
    v.object(SUBTITLE),
    subtitle,
  ),
  "video.subtitle.errored": define(
    "A subtitle could not be generated or translated. Only for endpoints that name it",
    v.object({ ...SUBTITLE, error: Failure }),
    { ...subtitle, source: "auto", error: failure },
    { isDefault: false },
  ),
  "video.subtitle.deleted": defineDetail("A subtitle was deleted", v.object(SUBTITLE), subtitle),
  "video.audio_track.created": defineDetail(
    "An audio track is added, and is being encoded",
    v.object(AUDIO_TRACK),
    audioTrack,
  ),
  "video.audio_track.ready": defineDetail("An added audio track plays", v.object(AUDIO_TRACK), audioTrack),
  "video.audio_track.errored": defineDetail(
    "An added audio track could not be encoded",
    v.object({ ...AUDIO_TRACK, error: Failure }),
    { ...audioTrack, error: failure },
  ),
  "video.audio_track.deleted": defineDetail("An audio track was deleted", v.object(AUDIO_TRACK), audioTrack),
  "video.static_rendition.created": defineDetail("A static rendition is added", v.object(RENDITION), rendition),
  "video.static_rendition.ready": defineDetail("A static rendition can be downloaded", v.object(RENDITION), rendition),
  "video.static_rendition.skipped": defineDetail(
    "The asset has no rendition of the name of a static rendition",
    v.object(RENDITION),
    rendition,
  ),
  "video.static_rendition.errored": defineDetail(
    "The asset of a static rendition failed",
    v.object(RENDITION),
    rendition,
  ),
  "video.static_rendition.deleted": defineDetail("A static rendition was deleted", v.object(RENDITION), rendition),
  "video.static_renditions.preparing": defineDetail(
    "Static renditions are added to an asset that is not encoded yet",
    v.object(OF_ASSET),
    ofAsset,
  ),
  "video.static_renditions.ready": defineDetail(
    "All static renditions of an asset are ready or skipped",
    v.object(OF_ASSET),
    ofAsset,
  ),
  "video.static_renditions.deleted": defineDetail(
    "The last static rendition of an asset was deleted",
    v.object(OF_ASSET),
    ofAsset,
  ),
  "video.master.preparing": defineDetail(
    "The download of a source is allowed by Mux's `master_access`, before the source is there",
    v.object(OF_ASSET),
    ofAsset,
  ),
  "video.master.ready": defineDetail(
    "The download of a source is allowed by Mux's `master_access`",
    v.object(OF_ASSET),
    ofAsset,
  ),
  "video.master.deleted": defineDetail(
    "The download of a source by Mux's `master_access` was ended",
    v.object(OF_ASSET),
    ofAsset,
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
  "live.channel.updated": defineDetail("A channel was changed", v.object(CHANNEL), channel),
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
  "live.target.created": defineDetail("A simulcast target was created", v.object(TARGET), target),
  "live.target.updated": defineDetail("A simulcast target was changed", v.object(TARGET), target),
  "live.target.deleted": defineDetail("A simulcast target was deleted", v.object(TARGET), target),
  "live.target.connecting": defineDetail(
    "The stream of a channel is to be sent to a simulcast target",
    v.object(TARGET),
    target,
  ),
  "live.target.started": defineDetail("A simulcast target accepts the stream", v.object(TARGET), target),
  "live.target.ended": defineDetail(
    "The stream of a channel is not sent to a simulcast target any more",
    v.object(TARGET),
    target,
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

import * as v from "valibot";
import { PLAYBACK_STATUSES } from "#model/enums.ts";
import { ByteCount, describedAs, Id, Name, PartNumber, Sha256, Text, Time } from "./fields.ts";

/**
 * Fields that several schemas share, each with its description, which the OpenAPI document and the tools of agents show. A field
 * that only one schema has is described there.
 */

export const ActionField = v.pipe(Text(100), v.description("What the client wants to do, as MediaMTX names it"));
export const AssetId = v.pipe(v.number(), v.description("Id of the asset"));
export const AttemptField = v.pipe(v.number(), v.description("Number of the attempt, from 1"));
export const AverageBandwidth = v.pipe(v.number(), v.description("Average bitrate in bits per second"));
export const BandwidthField = v.pipe(v.number(), v.description("Peak bitrate in bits per second"));
export const BytesExpected = v.pipe(ByteCount, v.description("Size of the file in bytes"));
export const BytesField = v.pipe(v.number(), v.description("Size in bytes"));
export const BytesReceived = v.pipe(
  ByteCount,
  v.description("Bytes received so far; when complete, the size of the file"),
);
export const ChannelField = v.pipe(v.string(), v.description("Name of the channel"));
export const ChannelId = v.pipe(v.number(), v.description("Id of the channel"));
export const CodecsField = v.pipe(v.string(), v.description("Codecs as in RFC 6381"));
export const CodeField = v.pipe(v.string(), v.description("What happened, for programs"));
export const CollectionId = v.pipe(Id, v.description("Id of the collection; null for none"));
export const ContentType = v.pipe(v.string(), v.description("Media type"));
export const CreatedAt = v.pipe(Time, v.description("Time of creation"));
export const DashManifestPath = v.pipe(v.string(), v.description("Path of the DASH manifest; null without one"));
export const DescriptionField = v.pipe(v.string(), v.description("Description"));
export const DryRun = v.pipe(v.boolean(), v.description("Whether deliveries are only counted"));
export const DurationSeconds = v.pipe(v.number(), v.description("Duration of the video in seconds"));
export const EndMs = v.pipe(v.number(), v.description("End in milliseconds"));
export const ErrorField = v.pipe(v.string(), v.description("What failed; null without a fault"));
export const EtagField = v.pipe(Name(200), v.description("ETag of the stored object or part"));
export const EventField = v.pipe(v.string(), v.description("Name of the event"));
export const ExpiresAt = v.pipe(Time, v.description("Time after which it is no longer valid; null for never"));
export const ExpiresIn = v.pipe(v.number(), v.description("Seconds until it is no longer valid"));
export const ExportedAt = v.pipe(Time, v.description("Time of the export"));
export const ExternalIdField = v.pipe(
  v.string(),
  v.description("Id in public URLs: your own, or a generated one that starts with `vid_`"),
);
export const FileField = v.pipe(v.string(), v.description("The file"));
export const FilenameField = v.pipe(v.string(), v.description("Name of the file, without directories"));
export const FinishedAt = v.pipe(Time, v.description("End time; null before"));
export const FrameRateField = v.pipe(v.number(), v.description("Frames per second"));
export const HeightField = v.pipe(v.number(), v.description("Height in pixels"));
export const IpField = v.pipe(v.string(), v.description("Address of the client"));
export const IsDefault = v.pipe(
  v.boolean("must be true or false"),
  v.description("Whether players select it by default"),
);
export const KindField = v.pipe(v.string(), v.description("Kind"));
export const LabelField = v.pipe(v.string(), v.description("Name shown to viewers"));
export const LanguageField = v.pipe(v.string(), v.description("Language tag as in BCP 47, such as `en` or `pt-BR`"));
export const LeaseExpiresAt = v.pipe(Time, v.description("Time at which the lease ends unless it is renewed"));
export const LocalPath = v.pipe(v.string(), v.description("Path of the file on the client, for its own use"));
export const ManifestPath = v.pipe(v.string(), v.description("Path of the HLS master playlist"));
export const ManifestUrlField = v.pipe(
  v.string(),
  v.description("URL of the media at another provider; null for media of this service"),
);
export const MessageField = v.pipe(v.string(), v.description("What happened, for people"));
export const MethodField = v.pipe(v.string(), v.description("HTTP method of the request"));
export const NameField = v.pipe(v.string(), v.description("Name for people"));
export const ObjectsField = v.pipe(v.number(), v.description("Number of objects"));
export const OriginalFilename = v.pipe(v.string(), v.description("Name of the uploaded file"));
export const PartCount = v.pipe(v.number(), v.description("Number of parts"));
export const PartNumberField = v.pipe(PartNumber, v.description("Number of the part, from 1"));
export const PathField = v.pipe(v.string(), v.description("Path of the object"));
export const PlaylistPath = v.pipe(
  v.string(),
  v.description("Path of the rendition's playlist, below the asset's prefix"),
);
export const PositionField = v.pipe(v.number(), v.description("Position in lists, ascending"));
export const PrefixField = v.pipe(v.string(), v.description("Prefix of the keys of all outputs"));
export const ProducerField = v.pipe(v.string(), v.description("Program that created the track"));
export const ProfileField = v.pipe(v.string(), v.description("Name of the encoding profile"));
export const ProgressField = v.pipe(v.number(), v.description("0 to 100"));
export const ReasonField = v.pipe(v.picklist(["not_found", "ambiguous"]), v.description("Why the row was not applied"));
export const RecordId = v.pipe(v.number(), v.description("Id of the record"));
export const RefField = v.pipe(v.string(), v.description("Id or email address"));
export const RelativePath = v.pipe(
  v.string(),
  v.description("Path of the file below the directory that was uploaded, if the client reported one"),
);
export const RequestId = v.pipe(
  v.string(),
  v.description("Id of the request, for support; also in the header X-Request-Id"),
);
export const RevokedAt = v.pipe(Time, v.description("Time of the revocation; null while valid"));
export const RouteField = v.pipe(v.string(), v.description("Path of the request, with placeholders"));
export const SchemaVersion = v.pipe(v.literal(1), v.description("Version of the format"));
export const Sha256Field = v.pipe(Sha256, v.description("SHA-256 of the content, as 64 hex digits"));
export const SlugField = v.pipe(
  v.string(),
  v.description("Lower-case letters and digits in groups joined by hyphens; unique"),
);
export const SourceBytes = v.pipe(v.number(), v.description("Size of the source in bytes"));
export const SourceField = v.pipe(v.string(), v.description("How it was created"));
export const SourceHeight = v.pipe(v.number(), v.description("Height of the source in pixels"));
export const SourceKey = v.pipe(v.string(), v.description("Key of the source in storage"));
export const SourceSha256 = v.pipe(
  v.string(),
  v.description("SHA-256 of the source as 64 hex digits; null if unknown"),
);
export const SourceWidth = v.pipe(v.number(), v.description("Width of the source in pixels"));
export const StageField = v.pipe(v.string(), v.description("Current step of the work; null before it starts"));
export const StartedAt = v.pipe(Time, v.description("Start time; null before"));
export const StartField = v.pipe(Time, v.description("Start of the interval"));
export const StartMs = v.pipe(v.number(), v.description("Start in milliseconds"));
export const StatusField = v.pipe(v.string(), v.description("Current status"));
export const StorageBytes = v.pipe(v.number(), v.description("Stored bytes, as billed"));
export const StorageKey = v.pipe(v.string(), v.description("Key of the object in storage"));
export const StoryboardPath = v.pipe(v.string(), v.description("Path of the storyboard's WebVTT; null without one"));
export const SubtitleId = v.pipe(v.number(), v.description("Id of the subtitle"));
export const TagsField = v.pipe(
  v.record(v.string(), v.union([v.string(), v.number(), v.boolean()])),
  v.description("Names and values; a value is a string, a number or a boolean"),
);
export const TargetId = v.pipe(v.string(), v.description("Id of the resource that was changed"));
export const TargetType = v.pipe(v.string(), v.description("Kind of resource that was changed"));
export const TenantIdField = v.pipe(v.number(), v.description("Id of the tenant"));
export const TitleField = v.pipe(v.string(), v.description("Title"));
export const ToField = v.pipe(Time, v.description("End of the period"));
export const TokenExpiresAt = v.pipe(Time, v.description("Time after which the token is no longer valid"));
export const TokenField = v.pipe(v.string(), v.description("The token"));
export const TrackId = v.pipe(v.number(), v.description("Id of the track"));
export const UpdatedAt = v.pipe(Time, v.description("Time of the last change"));
export const UploadId = v.pipe(v.string(), v.description("Id of the upload"));
export const UploadMethod = v.pipe(v.string(), v.description("HTTP method of the upload"));
export const UrlField = v.pipe(v.string(), v.description("URL"));
export const WaitSeconds = v.pipe(
  v.number("must be a number"),
  v.minValue(0),
  v.maxValue(20, "must be at most 20"),
  v.description("How long the server may hold the request until there is a job"),
);
export const WidthField = v.pipe(v.number(), v.description("Width in pixels"));
export const WorkerIdField = v.pipe(
  v.string(),
  v.description("Name of the worker; null before a worker leases the job"),
);
export const TenantIdFromClient = describedAs(TenantIdField, Id);
export const ThumbnailPath = v.pipe(v.string(), v.description("Path of the poster; null without one"));
export const Mp4Path = v.pipe(v.string(), v.description("Path of the MP4 file; null without one"));
export const PlaybackStatusField = v.pipe(v.picklist(PLAYBACK_STATUSES), v.description("Status of the playable media"));

/** A part of a multipart upload that is stored. */
export const StoredPart = v.object({
  part_number: describedAs(PartNumberField, v.number()),
  bytes: BytesField,
  etag: describedAs(EtagField, v.string()),
});

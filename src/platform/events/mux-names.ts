import { EVENT_TYPES, type EventType } from "./catalog.ts";

/**
 * When an event is delivered under a name: `upload` or `no upload` of an asset that comes, or does not come, from a direct upload,
 * `master` while its source can be downloaded, `files` of an asset with static renditions, `recorded` of a stream that is recorded.
 */
export type MuxCondition = "upload" | "no upload" | "master" | "files" | "recorded" | null;
type Named = readonly [name: string, condition?: Exclude<MuxCondition, null>];

/** Our events, each with Mux's names for it. The others are not delivered in Mux's form. */
const MUX_NAMES = {
  "video.direct_upload.created": [["video.upload.created"]],
  "video.direct_upload.canceled": [["video.upload.cancelled"]],
  "video.upload.completed": [["video.upload.asset_created", "upload"]],
  // At Mux an asset whose URL cannot be fetched is errored.
  "video.upload.failed": [
    ["video.upload.errored", "upload"],
    ["video.asset.errored", "no upload"],
  ],
  "video.asset.created": [["video.asset.created"]],
  "video.asset.updated": [["video.asset.updated"]],
  "video.asset.ready": [["video.asset.ready"], ["video.asset.master.ready", "master"]],
  "video.asset.errored": [
    ["video.asset.errored"],
    ["video.asset.static_renditions.errored", "files"],
    ["video.asset.master.errored", "master"],
  ],
  "video.asset.deleted": [["video.asset.deleted"]],
  "video.subtitle.created": [["video.asset.track.created"]],
  "video.subtitle.ready": [["video.asset.track.ready"]],
  "video.subtitle.errored": [["video.asset.track.errored"]],
  "video.subtitle.deleted": [["video.asset.track.deleted"]],
  "video.audio_track.created": [["video.asset.track.created"]],
  "video.audio_track.ready": [["video.asset.track.ready"]],
  "video.audio_track.errored": [["video.asset.track.errored"]],
  "video.audio_track.deleted": [["video.asset.track.deleted"]],
  "video.static_rendition.created": [["video.asset.static_rendition.created"]],
  "video.static_rendition.ready": [["video.asset.static_rendition.ready"]],
  "video.static_rendition.skipped": [["video.asset.static_rendition.skipped"]],
  "video.static_rendition.errored": [["video.asset.static_rendition.errored"]],
  "video.static_rendition.deleted": [["video.asset.static_rendition.deleted"]],
  "video.static_renditions.preparing": [["video.asset.static_renditions.preparing"]],
  "video.static_renditions.ready": [["video.asset.static_renditions.ready"]],
  "video.static_renditions.deleted": [["video.asset.static_renditions.deleted"]],
  "video.master.preparing": [["video.asset.master.preparing"]],
  "video.master.ready": [["video.asset.master.ready"]],
  "video.master.deleted": [["video.asset.master.deleted"]],
  "live.stream.started": [
    ["video.live_stream.connected"],
    ["video.live_stream.recording", "recorded"],
    ["video.live_stream.active"],
  ],
  "live.stream.ended": [["video.live_stream.disconnected"], ["video.live_stream.idle"]],
  "live.channel.created": [["video.live_stream.created"]],
  "live.channel.updated": [["video.live_stream.updated"]],
  "live.channel.enabled": [["video.live_stream.enabled"]],
  "live.channel.disabled": [["video.live_stream.disabled"]],
  "live.channel.revoked": [["video.live_stream.deleted"]],
  "live.recording.ready": [["video.asset.live_stream_completed"]],
  "live.target.created": [["video.live_stream.simulcast_target.created"]],
  "live.target.updated": [["video.live_stream.simulcast_target.updated"]],
  "live.target.deleted": [["video.live_stream.simulcast_target.deleted"]],
  "live.target.connecting": [["video.live_stream.simulcast_target.starting"]],
  "live.target.started": [["video.live_stream.simulcast_target.broadcasting"]],
  "live.target.failed": [["video.live_stream.simulcast_target.errored"]],
  "live.target.ended": [["video.live_stream.simulcast_target.idle"]],
} as const satisfies { readonly [Type in EventType]?: readonly Named[] };

export type MuxEventType = keyof typeof MUX_NAMES;
const namesOf = (type: MuxEventType): readonly Named[] => MUX_NAMES[type];
/** [our event, Mux's name, when it is delivered under this name]. A name may be that of several of our events. */
export const MUX_PAIRS: readonly (readonly [MuxEventType, string, MuxCondition])[] = (
  Object.keys(MUX_NAMES) as MuxEventType[]
).flatMap((type) => namesOf(type).map(([name, condition = null]) => [type, name, condition] as const));
export const ALL_MUX_NAMES: readonly string[] = [...new Set(MUX_PAIRS.map(([, name]) => name))];

/** Mux's names for one of our events, in the order of their deliveries; none for another. */
export const muxNamesOfEvent = (type: string): readonly string[] =>
  MUX_PAIRS.filter(([own]) => own === type).map(([, name]) => name);
/** What a subscription names: one of Mux's names is that one alone, one of ours is all of Mux's for it. */
export const muxNamesOf = (name: string): readonly string[] =>
  ALL_MUX_NAMES.includes(name) ? [name] : muxNamesOfEvent(name);

/** Names that Mux has and we do not. */
export const ONLY_MUX_NAMES: string[] = ALL_MUX_NAMES.filter(
  (name) => !(EVENT_TYPES as readonly string[]).includes(name),
);

/** Our events of a name of Mux's; one of the same name is the first. */
export const fromMuxName = (name: string): MuxEventType[] =>
  MUX_PAIRS.filter(([, muxName]) => muxName === name)
    .map(([type]) => type)
    .toSorted((a, b) => Number(b === name) - Number(a === name));

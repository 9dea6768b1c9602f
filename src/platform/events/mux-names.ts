import { EVENT_TYPES, type EventType } from "./catalog.ts";

/** Our events, each with Mux's names for it. The others are not delivered in Mux's form. */
export const MUX_NAMES = {
  "video.upload.completed": ["video.asset.created", "video.upload.asset_created"],
  "video.upload.failed": ["video.upload.errored"],
  "video.asset.ready": ["video.asset.ready"],
  "video.asset.errored": ["video.asset.errored"],
  "video.asset.deleted": ["video.asset.deleted"],
  "video.subtitle.ready": ["video.asset.track.ready"],
  "live.stream.started": ["video.live_stream.active"],
  "live.stream.ended": ["video.live_stream.idle"],
  "live.channel.created": ["video.live_stream.created"],
  "live.channel.enabled": ["video.live_stream.enabled"],
  "live.channel.disabled": ["video.live_stream.disabled"],
  "live.channel.revoked": ["video.live_stream.deleted"],
  "live.recording.ready": ["video.asset.live_stream_completed"],
} as const satisfies { readonly [Type in EventType]?: readonly string[] };

export type MuxEventType = keyof typeof MUX_NAMES;
const MUX_EVENT_TYPES = Object.keys(MUX_NAMES) as MuxEventType[];
const isMuxEvent = (type: string): type is MuxEventType => Object.hasOwn(MUX_NAMES, type);
/** Mux's names for one of our events, or for one of its own; none for another. */
export const muxNamesOf = (name: string): readonly string[] =>
  isMuxEvent(name) ? MUX_NAMES[name] : ALL_MUX_NAMES.filter((one) => one === name);
/** [our event, Mux's name] */
export const MUX_PAIRS: readonly (readonly [MuxEventType, string])[] = MUX_EVENT_TYPES.flatMap((type) =>
  MUX_NAMES[type].map((name) => [type, name] as const),
);
export const ALL_MUX_NAMES: readonly string[] = MUX_PAIRS.map(([, name]) => name);
/** It is about a direct upload, which not every asset comes from. */
export const UPLOAD_CREATED = "video.upload.asset_created";

/** Names that Mux has and we do not. */
export const ONLY_MUX_NAMES: string[] = ALL_MUX_NAMES.filter(
  (name) => !(EVENT_TYPES as readonly string[]).includes(name),
);

/** Our event of a name of Mux's; null for another name. */
export const fromMuxName = (name: string): MuxEventType | null =>
  MUX_PAIRS.find(([, muxName]) => muxName === name)?.[0] ?? null;

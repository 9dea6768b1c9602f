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
  "live.recording.ready": ["video.asset.live_stream_completed"],
} as const satisfies { readonly [Type in EventType]?: readonly string[] };

export type MuxEventType = keyof typeof MUX_NAMES;
export const MUX_EVENT_TYPES = Object.keys(MUX_NAMES) as MuxEventType[];
export const isMuxEvent = (type: string): type is MuxEventType => Object.hasOwn(MUX_NAMES, type);

/** Names that Mux has and we do not. */
export const ONLY_MUX_NAMES: string[] = Object.values(MUX_NAMES)
  .flat()
  .filter((name) => !(EVENT_TYPES as readonly string[]).includes(name));

/** Our event of a name of Mux's or ours; null where the other has none. */
export const fromMuxName = (name: string): MuxEventType | null =>
  MUX_EVENT_TYPES.find((type) => type === name || (MUX_NAMES[type] as readonly string[]).includes(name)) ?? null;

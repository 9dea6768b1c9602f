/** What an audio track is for. */
export const AUDIO_ROLES = ["main", "alternate", "commentary", "dub", "description"] as const;
export type AudioRole = (typeof AUDIO_ROLES)[number];

/** What manifests say of an audio track. */
export type AudioLabel = { name: string; language: string | null; role: AudioRole; isDefault: boolean };

/** A track of the source, by its rendition, as it is to be shown, or left out. */
export type ChangedAudio = AudioLabel & { rendition: string; isRemoved: boolean };

/** A track with media of its own. `list` is the URI of its playlist, `base` the URL of its files, with a slash. */
export type AddedAudio = AudioLabel & {
  id: number;
  list: string;
  base: string;
  codec: string;
  bandwidth: number;
  timescale: number;
  channels: number;
  segments: readonly [start: number, duration: number, repeat: number][];
  /** Where the presentation begins on the clock of the segments, in seconds; by default 0. */
  startSeconds?: number | undefined;
};

export type AudioChanges = { changed: readonly ChangedAudio[]; added: readonly AddedAudio[] };

export const hasChanges = ({ changed, added }: AudioChanges): boolean => changed.length + added.length > 0;

/** The 5.1 rendition of a track is changed as its stereo one. */
export const stereoOf = (rendition: string): string => rendition.replace(/^surround(?=-|$)/, "audio");

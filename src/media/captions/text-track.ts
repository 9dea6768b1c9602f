import type { PacketFormat } from "#lib/subtitles";
import { shownLine } from "#model/shown-text.ts";
import type { TEXT_TRACK_KINDS } from "#protocol/text-tracks.ts";

/** A text track of a source, as its container states it. */
export type TextTrack = {
  /** Its position in the source, from 1. */
  number: number;
  /** For people: as the container names it. */
  codec: string;
  /** Null where its packets cannot be read; `ttml`: each is a document. */
  format: PacketFormat | "ttml" | null;
  /** As the source states it: BCP 47 or ISO 639; null where it does not. */
  language: string | null;
  title: string | null;
  kind: (typeof TEXT_TRACK_KINDS)[number];
  /** The file asks for it to be shown without a choice. */
  isDefault: boolean;
};

/** A packet of a track. Times in milliseconds on the timeline of the file; `endMs` is null where it is not stated. */
export type TextPacket = {
  number: number;
  startMs: number;
  endMs: number | null;
  /** Null for one that is too large, or cannot be decoded. */
  data: Uint8Array | null;
  /** Settings of a WebVTT cue. */
  settings?: string;
};

const MAX_TITLE = 200;

/** A title in one line, as long as a label may be; null for a blank one. */
export function titleOf(text: string | null): string | null {
  const title = shownLine((text ?? "").trim().slice(0, MAX_TITLE).toWellFormed()).trim();
  return title === "" ? null : title;
}

/** A language as it may be reported; null for what is no tag, whatever its length. */
export const languageOf = (text: string | null): string | null =>
  text !== null && /^[A-Za-z0-9]{1,8}(?:-[A-Za-z0-9]{1,8}){0,10}$/.test(text.trim()) ? text.trim() : null;

export const kindOf = ({ isForced, isCaption }: { isForced: boolean; isCaption: boolean }): TextTrack["kind"] =>
  isForced ? "forced" : isCaption ? "captions" : "subtitles";

/** `wanted`: the numbers of the tracks that are still to be read. `step` is called for each part of the file, and may throw. */
export type PacketOptions = { wanted: () => ReadonlySet<number>; step: () => void };

export type TextSource = AsyncDisposable & {
  tracks: readonly TextTrack[];
  /** Their packets. Ends early at a damaged part. Throws the errors of the file, and those of `step`. */
  packets: (options: PacketOptions) => AsyncGenerator<TextPacket>;
};

import { canonicalLanguage, ownName } from "#lib/base";
import type { SUBTITLE_ROLES } from "#model/enums.ts";

/** What a text track is for. */
export const TEXT_TRACK_KINDS = ["subtitles", "captions", "forced"] as const;

/** As many as an asset may have subtitles. */
export const MAX_TEXT_TRACKS = 20;

/** A text track of a source, as a worker reports it. */
type ReportedTrack = {
  /** Its name in the completion, such as `track3`. */
  name: string;
  language: string | null | undefined;
  label: string | null | undefined;
  kind: (typeof TEXT_TRACK_KINDS)[number];
};

type Kind = { role: (typeof SUBTITLE_ROLES)[number]; mark: { subtag: string; words: string } | null };

/** `mark`: what tags and labels have in addition. */
const KINDS: Record<(typeof TEXT_TRACK_KINDS)[number], Kind> = {
  subtitles: { role: "subtitle", mark: null },
  captions: { role: "caption", mark: { subtag: "sdh", words: "SDH" } },
  forced: { role: "forced", mark: { subtag: "forced", words: "forced" } },
};

/**
 * Language, label and role of a text track. An asset has one subtitle in each language, so that others have a private subtag (RFC 5646,
 * 2.2.7): always `en-x-forced`, and where `en` exists `en-x-sdh` or `en-x-track3`. `tracks`: those that the asset has.
 */
export function subtitleOfTrack(
  { name, language: stated, label, kind }: ReportedTrack,
  tracks: readonly { language: string }[],
): { language: string; label: string; role: Kind["role"] } {
  const spoken = canonicalLanguage(stated ?? "") ?? "und";
  const { role, mark } = KINDS[kind];
  const marked = mark && withPrivate(spoken, mark.subtag);
  const candidates = [...(kind === "forced" ? [] : [spoken]), ...(marked ? [marked] : [])];
  const isTaken = (tag: string) => tracks.some((track) => track.language === tag);
  const language = candidates.find((tag) => !isTaken(tag)) ?? withPrivate(marked ?? spoken, name);
  const named = spoken === "und" ? name.replace(/^track/, "Track ") : ownName(spoken);
  return { language, label: label?.trim() || (mark ? `${named} (${mark.words})` : named), role };
}

const withPrivate = (tag: string, subtag: string) => `${tag}${tag.includes("-x-") ? "" : "-x"}-${subtag}`;

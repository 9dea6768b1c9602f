/** Writes a static DASH manifest (ISO/IEC 23009-1) over the segments of the HLS playlists; live-mpd.ts, that of a live stream. */

import { spokenTag } from "#lib/base";
import { withoutForbidden } from "#lib/xml";
import type { SubtitleRole } from "./m3u8-subtitles.ts";
import type { MpdEdit } from "./mpd-edits.ts";

/** ISO/IEC 23009-1, 8.4: segments of ISO BMFF by templates. It is the profile of video on demand too. */
export const ISOFF_LIVE_PROFILE = "urn:mpeg:dash:profile:isoff-live:2011";

/** Relative names with DASH's $…$ identifiers. */
export type MpdTemplates = { initTemplate: string; mediaTemplate: string };

export type MpdRepresentation = {
  /** Its segments begin with keyframes; the default. */
  isIndependent?: boolean;
  /** Also the directory of its segments, through $RepresentationID$. */
  id: string;
  /** bit/s */
  bandwidth: number;
  codec: string;
  timescale: number;
  /** In timescale units, contiguous. */
  segments: readonly { start: number; duration: number }[];
  /** Number of the first segment, and the media time that is the start of the presentation; default 1 and 0. */
  begins?: { number: number; time: number } | undefined;
  /** `frameRate` is null when it is not known. Pixels are square, unless `sar` says otherwise; null: not known. */
  video?: { width: number; height: number; frameRate: string | null; sar?: string | null } | undefined;
  /** `sampleRate` is null when it is not known. */
  audio?: { sampleRate: number | null; channels: number } | undefined;
};

export type MpdSet = {
  /** `text`: WebVTT in segments without an init segment, with the numbers and times of those of video. */
  kind: "video" | "audio" | "text";
  /** The label of a text track. */
  label?: string | undefined;
  language: string | null;
  isMain: boolean;
  /** A player that can play several sets prefers the one with the highest (ISO/IEC 23009-1, 5.3.7.2). */
  selectionPriority?: number | undefined;
  /** The colors of HDR video, as values of ISO/IEC 23091-2. */
  colors?: { primaries: number; transfer: number; matrix: number } | undefined;
  representations: readonly MpdRepresentation[];
};

/** A sprite sheet of thumbnails, row by row. */
export type MpdTiles = {
  /** With $Number$ for 1. */
  mediaTemplate: string;
  bytes: number;
  columns: number;
  rows: number;
  tileWidth: number;
  tileHeight: number;
  intervalSeconds: number;
};

export function staticMpd(
  options: MpdTemplates & {
    profile: string;
    durationSeconds: number;
    maxSegmentSeconds: number;
    sets: readonly MpdSet[];
    tiles?: MpdTiles;
  },
): string {
  const sets = adaptationSets(options.sets, options);
  return `<?xml version="1.0" encoding="UTF-8"?>
<MPD xmlns="${MPD_NAMESPACE}" profiles="${attribute(options.profile)}" type="static" mediaPresentationDuration="${xsDuration(options.durationSeconds)}" maxSegmentDuration="${xsDuration(options.maxSegmentSeconds)}" minBufferTime="${xsDuration(options.maxSegmentSeconds)}">
  <Period id="0" start="PT0S" duration="${xsDuration(options.durationSeconds)}">
${[...sets, ...(options.tiles ? [tileSet(options.tiles, sets.length)] : [])].join("\n")}
  </Period>
</MPD>
`;
}

export const MPD_NAMESPACE = "urn:mpeg:dash:schema:mpd:2011";

/** The elements of a period; their ids are their indexes. */
export const adaptationSets = (sets: readonly MpdSet[], templates: MpdTemplates): string[] =>
  sets.map((set, index) => {
    const language = set.language ? ` lang="${attribute(set.language)}"` : "";
    // 5.3.7.2: segments that begin with a keyframe.
    const sap = set.representations.every(({ isIndependent }) => isIndependent !== false) ? ' startWithSAP="1"' : "";
    const priority = set.selectionPriority ? ` selectionPriority="${set.selectionPriority}"` : "";
    const mimeType = set.kind === "text" ? "text/vtt" : `${set.kind}/mp4`;
    const open = `    <AdaptationSet id="${index}" contentType="${set.kind}" mimeType="${mimeType}"${language}${priority} segmentAlignment="true"${sap}>`;
    const value = set.kind === "text" ? "caption" : set.isMain ? "main" : "alternate";
    const role = `      <Role schemeIdUri="urn:mpeg:dash:role:2011" value="${value}"/>`;
    return [
      open,
      ...(set.label ? [`      <Label>${attribute(set.label)}</Label>`] : []),
      ...properties(set),
      role,
      ...set.representations.map((one) => (set.kind === "text" ? texts : media)(one, templates)),
      "    </AdaptationSet>",
    ].join("\n");
  });

/**
 * ISO/IEC 23009-1, 5.8.4.8: essential, so that a player that does not know the colors leaves the set out, and plays SDR
 * (DASH-IF Interoperability Points 4.3, 10.3).
 */
const properties = ({ colors }: MpdSet): string[] =>
  colors
    ? Object.entries({
        ColourPrimaries: colors.primaries,
        TransferCharacteristics: colors.transfer,
        MatrixCoefficients: colors.matrix,
      }).map(([name, value]) => `      <EssentialProperty schemeIdUri="urn:mpeg:mpegB:cicp:${name}" value="${value}"/>`)
    : [];

/** DASH-IF Interoperability Points 4.3, 6.2.6: a whole sheet is one segment, even when its last row is incomplete. */
function tileSet(
  { mediaTemplate, bytes, columns, rows, tileWidth, tileHeight, intervalSeconds }: MpdTiles,
  id: number,
) {
  const seconds = columns * rows * intervalSeconds;
  return `    <AdaptationSet id="${id}" contentType="image" mimeType="image/jpeg">
      <SegmentTemplate timescale="1000" media="${attribute(mediaTemplate)}" duration="${Math.round(seconds * 1000)}" startNumber="1"/>
      <Representation id="storyboard" bandwidth="${Math.ceil((bytes * 8) / seconds)}" width="${columns * tileWidth}" height="${rows * tileHeight}">
        <EssentialProperty schemeIdUri="http://dashif.org/guidelines/thumbnail_tile" value="${columns}x${rows}"/>
      </Representation>
    </AdaptationSet>`;
}

function media(one: MpdRepresentation, templates: MpdTemplates): string {
  const { audio } = one;
  const channels = audio
    ? `\n        <AudioChannelConfiguration schemeIdUri="urn:mpeg:dash:23003:3:audio_channel_configuration:2011" value="${audio.channels}"/>`
    : "";
  return `      <Representation id="${attribute(one.id)}" bandwidth="${Math.ceil(one.bandwidth)}" codecs="${attribute(one.codec)}"${shapeOf(one)}>${channels}
${segmentTemplate(one, templates)}
      </Representation>`;
}

const texts = (one: MpdRepresentation, { mediaTemplate }: MpdTemplates): string =>
  `      <Representation id="${attribute(one.id)}" bandwidth="${Math.ceil(one.bandwidth)}">
${segmentTemplate(one, { initTemplate: null, mediaTemplate: mediaTemplate.replace(/\.\w+$/, ".vtt") })}
      </Representation>`;

function segmentTemplate(
  { timescale, segments, begins }: MpdRepresentation,
  { initTemplate, mediaTemplate }: { initTemplate: string | null; mediaTemplate: string },
): string {
  const offset = begins ? ` presentationTimeOffset="${begins.time}"` : "";
  const init = initTemplate === null ? "" : ` initialization="${attribute(initTemplate)}"`;
  return `        <SegmentTemplate timescale="${timescale}"${init} media="${attribute(mediaTemplate)}" startNumber="${begins?.number ?? 1}"${offset}>
          <SegmentTimeline>
${timeline(segments)}
          </SegmentTimeline>
        </SegmentTemplate>`;
}

function shapeOf({ video, audio }: MpdRepresentation): string {
  if (!video) return audio?.sampleRate ? ` audioSamplingRate="${audio.sampleRate}"` : "";
  const { width, height, frameRate, sar = "1:1" } = video;
  const rate = frameRate === null ? "" : ` frameRate="${frameRate}"`;
  return ` width="${width}" height="${height}"${rate}${sar === null ? "" : ` sar="${attribute(sar)}"`}`;
}

/** Consecutive equal durations are one S element with a repeat count (5.3.9.6). */
function timeline(segments: readonly { start: number; duration: number }[]): string {
  const lines: { start: number; duration: number; repeat: number }[] = [];
  let expected = -1;
  for (const { start, duration } of segments) {
    const last = lines.at(-1);
    if (last && last.duration === duration && start === expected) last.repeat++;
    else lines.push({ start, duration, repeat: 0 });
    expected = start + duration;
  }
  return lines
    .map((line) => `            <S t="${line.start}" d="${line.duration}"${line.repeat ? ` r="${line.repeat}"` : ""}/>`)
    .join("\n");
}

export type MpdSubtitles = {
  id: number;
  address: string;
  language: string;
  label: string;
  isDefault: boolean;
  role: SubtitleRole;
};

/** ISO/IEC 23009-1, 5.8.5.5. */
const ROLES: Record<SubtitleRole, string> = {
  subtitle: "subtitle",
  caption: "caption",
  description: "description",
  forced: "forced-subtitle",
};
/** For whom a track is (DASH-IF Interoperability Points 5, 3.2.3): people who cannot see, or cannot hear. */
const PURPOSES: Partial<Record<SubtitleRole, number>> = { description: 1, caption: 2 };

/**
 * Adds sidecar text tracks: one WebVTT file for the whole presentation (5.3.7.2 allows sets of any kind). A manifest with
 * several periods is unchanged, because the file would play from its beginning in each.
 */
export const mpdWithSubtitles =
  (tracks: readonly MpdSubtitles[]): MpdEdit =>
  (draft) => {
    const at = tracks.length === 0 ? null : draft.endOfPeriod();
    if (at !== null) draft.insert(at, tracks.map(textSet).join(""));
  };

function textSet({ id, address, language, label, isDefault, role: own }: MpdSubtitles): string {
  const purpose = PURPOSES[own];
  const accessibility = purpose
    ? `<Accessibility schemeIdUri="urn:tva:metadata:cs:AudioPurposeCS:2007" value="${purpose}"/>`
    : "";
  const roles = [ROLES[own], ...(isDefault ? ["main"] : [])]
    .map((role) => `<Role schemeIdUri="urn:mpeg:dash:role:2011" value="${role}"/>`)
    .join("");
  // Far above the ids that packagers use.
  const open = `<AdaptationSet id="${1_000_000 + id}" contentType="text" mimeType="text/vtt" lang="${attribute(spokenTag(language))}">`;
  const text = `<Representation id="subtitles-${id}" bandwidth="256"><BaseURL>${attribute(address)}</BaseURL></Representation>`;
  return `  ${open}\n      <Label>${attribute(label)}</Label>${accessibility}${roles}\n      ${text}\n    </AdaptationSet>\n  `;
}

/** xs:duration, to the millisecond. */
export const xsDuration = (seconds: number) => `PT${Number(seconds.toFixed(3))}S`;

const ENTITIES: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
export const attribute = (value: string) =>
  withoutForbidden(value.replace(/\p{Cc}/gu, " ")).replace(/[&<>"]/g, (character) => ENTITIES[character] ?? "");

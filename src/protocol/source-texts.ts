import * as v from "valibot";
import { describedAs, Key, Shown, Text } from "./fields.ts";
import { PathField } from "./record-fields.ts";
import { MAX_TEXT_TRACKS, TEXT_TRACK_KINDS } from "./text-tracks.ts";
import { ReportedWarnings } from "./warnings.ts";

/** Four channels of CEA-608 and 63 services of CEA-708, of which workers read six. */
const MAX_SERVICES = 16;
const isTextTrack = (name: string) => name.startsWith("track");
const isService = (name: string) => !isTextTrack(name);
const countOf = (texts: Record<string, unknown>, is: (name: string) => boolean) => Object.keys(texts).filter(is).length;
const SourceTextName = v.pipe(
  v.string(),
  v.regex(/^(cc[1-4]|service\d{1,2}|track\d{1,3})$/, "must be cc1 to cc4, service1 and more, or track1 and more"),
);
/** The texts of a source: closed captions in its video, and text tracks. */
export const ClosedCaptions = v.object({
  tracks: v.pipe(
    v.record(
      SourceTextName,
      v.object({
        path: describedAs(PathField, Key),
        language: v.pipe(v.nullish(Text(100)), v.description("As the source states it")),
        label: v.pipe(v.nullish(Shown(200)), v.description("The title of a text track")),
        kind: v.pipe(
          v.optional(v.picklist(TEXT_TRACK_KINDS)),
          v.description("What a text track is for: `captions` are for people who cannot hear, `forced` for everyone"),
        ),
        is_default: v.pipe(v.optional(v.boolean()), v.description("The source asks for it to be shown")),
        skipped_cues: v.pipe(
          v.optional(v.pipe(v.number(), v.integer(), v.minValue(0))),
          v.description("Cues of the source that the text does not contain"),
        ),
      }),
    ),
    v.maxEntries(MAX_SERVICES + MAX_TEXT_TRACKS, `must have at most ${MAX_SERVICES + MAX_TEXT_TRACKS} texts`),
    v.check((texts) => countOf(texts, isService) <= MAX_SERVICES, `must have at most ${MAX_SERVICES} services`),
    v.check(
      (texts) => countOf(texts, isTextTrack) <= MAX_TEXT_TRACKS,
      `must have at most ${MAX_TEXT_TRACKS} text tracks`,
    ),
    v.description(
      "WebVTT by its name: `cc1` to `cc4` of CEA-608, `service1` and more of CEA-708, or `track1` and more of a text track",
    ),
  ),
  warnings: v.pipe(v.optional(ReportedWarnings), v.description("Text tracks that are left out")),
  failed: v.pipe(
    v.optional(v.boolean("must be true or false")),
    v.description("The closed captions could not be read; the asset has a warning"),
  ),
});
export type ClosedCaptions = v.InferOutput<typeof ClosedCaptions>;

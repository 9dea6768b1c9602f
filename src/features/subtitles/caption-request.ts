import * as v from "valibot";
import type { App } from "#app.ts";
import { canonicalLanguage } from "#lib/base";
import type { Warning } from "#model/warnings.ts";
import { Name } from "#platform/http/schemas.ts";
import { configuredTranscriber } from "#platform/outbound/transcribe/configured.ts";

/** Requests for captions of the speech: of an upload, or of the recordings of a channel. */

const Language = v.pipe(
  v.string(),
  v.check((tag) => canonicalLanguage(tag) !== null, "must be a BCP 47 language tag such as en or pt-BR"),
);

export const CaptionLanguages = v.pipe(
  v.array(Language, "must be an array of languages"),
  v.maxLength(20, "must have at most 20 languages"),
  v.description("Languages to transcribe the audio in, as subtitles with source `auto`"),
);

/** Names for some of them, by language; the others are named after it. */
export const CaptionLabels = v.pipe(
  v.record(Language, Name(100), "must be an object of languages and names"),
  v.check((labels) => Object.keys(labels).length <= 20, "must have at most 20 languages"),
  v.description("Names of requested captions, by language; without one it is that of the language"),
);

/** Canonical and unique. Tags that are not languages, of rows from before they were validated, are left out. */
export const canonicalCaptions = (tags: readonly string[]): string[] => [
  ...new Set(tags.map(canonicalLanguage).filter((language) => language !== null)),
];

/** The `warnings` of the response to a request for captions, to be spread into it; `{}` when there are none. */
export async function captionWarnings({ config }: App, captions: readonly string[] | undefined) {
  if (!captions?.length || (await configuredTranscriber(config)).transcriber !== null) return {};
  const message =
    "Captions are requested, but this server has no transcriber (VODBOX_TRANSCRIBE); only a worker with its own transcriber can create them.";
  return { warnings: [{ code: "captions_not_configured", message }] };
}

/** Languages in a message, which has a limit in bytes. */
const NAMED = 5;

/**
 * The asset's warning of captions in `languages` that were requested and not created; null with a transcriber. `isPending`: a worker
 * with its own transcriber may still create them.
 */
export async function missingCaptions(
  { config }: App,
  languages: readonly string[],
  { isPending = false } = {},
): Promise<Warning | null> {
  if (languages.length === 0 || (await configuredTranscriber(config)).transcriber !== null) return null;
  const named = [...languages.slice(0, NAMED), ...(languages.length > NAMED ? ["…"] : [])].join(", ");
  const end = isPending ? "; only a worker with its own transcriber can create them." : ": they were not created.";
  const message = `Captions were requested (${named}), but this server has no transcriber (VODBOX_TRANSCRIBE)${end}`;
  return { code: "captions_not_configured", message };
}

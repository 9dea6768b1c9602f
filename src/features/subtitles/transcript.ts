import { eq } from "drizzle-orm";
import * as v from "valibot";
import type { App } from "#app.ts";
import { HttpError, notFound } from "#lib/base";
import { encodedText } from "#platform/http/content-encoding.ts";
import { RecordIdInPath } from "#platform/http/parameters.ts";
import { route } from "#platform/http/route.ts";
import { Text } from "#platform/http/schemas.ts";
import { parseDocument } from "#platform/parsing/parse-document.ts";
import { EndMs, LanguageField } from "#protocol/record-fields.ts";
import { type SubtitleRow, subtitleWords } from "#storage/db/schema.ts";
import { readAsset } from "../assets/queries.ts";
import { languageOf, subtitleContent } from "./content.ts";
import { subtitlesOf } from "./queries.ts";

const Cue = v.object({
  text: v.pipe(v.string(), v.description("Without markup, in one line")),
  start_ms: v.pipe(v.number(), v.description("When it is said, in ms")),
  end_ms: EndMs,
});
const Word = v.object({
  ...Cue.entries,
  confidence: v.optional(
    v.pipe(v.number(), v.description("0 to 1: how certain speech recognition is; absent where it is not known")),
  ),
});
const Transcript = v.pipe(
  v.object({
    language: LanguageField,
    words: v.optional(
      v.pipe(
        v.array(Word),
        v.description("In the order in which they are said; absent where no times of words are known"),
      ),
    ),
    cues: v.optional(v.pipe(v.array(Cue), v.description("In the order in which they are said; absent next to words"))),
  }),
  v.title("Transcript"),
);

/** The times of the words of a track, as `checkedWords` has them; undefined for a text without. */
export const wordsOf = async ({ db }: App, { objectKey }: SubtitleRow): Promise<Buffer | undefined> =>
  (await db.select().from(subtitleWords).where(eq(subtitleWords.objectKey, objectKey)).get())?.words;

/** What is said in an asset, from its subtitles. */
export const transcriptRoute = route({
  tag: "Subtitles",
  method: "GET",
  path: "/api/v1/assets/:id/transcript",
  operationId: "getTranscript",
  summary: "Get what is said in an asset, from its subtitles",
  params: v.object({ id: RecordIdInPath }),
  query: v.object({
    format: v.optional(
      v.pipe(
        v.picklist(["text", "json"], "must be text or json"),
        v.description("`json`: words with their times, or cues where only these are known"),
      ),
    ),
    language: v.optional(
      v.pipe(Text(100), v.description("BCP 47 tag; default: the language of the default subtitle, else of the first")),
    ),
  }),
  responses: { 200: Transcript },
  produces: ["text/plain"],
  errors: { 422: ["invalid_language", "document_too_complex"], 503: ["storage_not_configured", "busy"] },
  async handle(context) {
    const { app, caller, params, query, signal } = context;
    const asset = (await readAsset(app, caller, params.id)) ?? notFound("asset");
    const language = query.language === undefined ? null : languageOf(query.language);
    const ready = (await subtitlesOf(app.db, asset.id)).filter(({ status }) => status === "ready");
    const track =
      language === null
        ? (ready.find(({ isDefault }) => isDefault) ?? ready[0])
        : ready.find((each) => each.language === language);
    if (!track)
      throw new HttpError(
        404,
        "not_found",
        language === null ? "The asset has no subtitles." : `The asset has no subtitles in ${language}.`,
      );
    const { language: tag } = track;
    const asJson = query.format === "json" ? tag : null;
    const options = { tenantId: asset.tenantId, signal };
    const words = asJson === null ? undefined : await wordsOf(app, track);
    const { body } = words
      ? await parseDocument(app, "wordsTranscript", { words, language: tag }, options)
      : await parseDocument(app, "transcript", { text: await subtitleContent(app, track), asJson }, options);
    const type = asJson === null ? "text/plain" : "application/json";
    return encodedText(context, {
      text: async () => Buffer.from(body),
      headers: { "content-type": `${type}; charset=utf-8`, "content-language": tag, "cache-control": "no-store" },
    });
  },
});

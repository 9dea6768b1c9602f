import * as v from "valibot";
import { getAsset } from "#features/assets/queries.ts";
import { languageOf } from "#features/subtitles/content.ts";
import { AssetParams, Subtitle } from "#features/subtitles/schema.ts";
import { requireTranscription } from "#features/subtitles/transcribers.ts";
import { translatorOf } from "#features/subtitles/translate.ts";
import { subtitleRecord } from "#features/subtitles/urls.ts";
import { invalid, notFound } from "#lib/base";
import { route } from "#platform/http/route.ts";
import { storageOf } from "#platform/http/storage.ts";
import { generateCaptions, requireSpeech } from "./generate.ts";
import { CaptionJob, toCaptionJob } from "./schema.ts";

const MAX_TRANSLATIONS = 19;
const AUTO = "auto";

const Tag = v.pipe(v.string("must be a string"), v.maxLength(100, "must have at most 100 characters"));

export const generateSubtitleRoute = route({
  method: "POST",
  path: "/api/v1/assets/:video_asset_id/subtitles/generate",
  scope: "assets:write",
  tag: "Subtitles",
  operationId: "generateSubtitle",
  summary: "Generate captions from the speech of an asset, and translate them",
  params: AssetParams,
  body: v.object({
    language: v.optional(
      v.pipe(Tag, v.description("The language that is spoken, as a BCP 47 tag; `auto`: detect it")),
      AUTO,
    ),
    translate_to: v.optional(
      v.pipe(
        v.array(Tag, "must be an array of languages"),
        v.maxLength(MAX_TRANSLATIONS, `must have at most ${MAX_TRANSLATIONS} languages`),
        v.description("BCP 47 tags of the languages to translate the captions into, each as a subtitle of its own"),
      ),
      [],
    ),
  }),
  idempotent: {},
  responses: {
    202: v.object({
      job: v.pipe(CaptionJob, v.description("The job")),
      subtitle: v.pipe(Subtitle, v.description("The subtitle")),
    }),
  },
  errors: {
    403: ["quota_exceeded"],
    409: ["asset_conflict"],
    422: [
      "asset_not_ready",
      "no_audio",
      "invalid_language",
      "language_taken",
      "subtitle_limit_reached",
      "idempotency_key_reused",
    ],
    503: ["transcription_not_configured", "translation_not_configured", "storage_not_configured"],
  },
  async handle({ app, caller, params, body, commit }) {
    const id = params.video_asset_id;
    const known = (await getAsset(app.db, caller, id)) ?? notFound("asset");
    storageOf(app);
    await requireTranscription(app);
    const language = body.language === AUTO ? null : languageOf(body.language);
    const translateTo = [...new Set(body.translate_to.map((tag, at) => languageOf(tag, `translate_to.${at}`)))];
    if (language !== null && translateTo.includes(language))
      invalid("translate_to", `the captions are in ${language} already`, "invalid_language");
    if (translateTo.length > 0) await translatorOf(app);
    requireSpeech(known);
    return commit(async (tx) => {
      const asset = (await getAsset(tx, caller, id)) ?? notFound("asset");
      const { job, subtitle } = await generateCaptions(tx, app, asset, { language, translateTo });
      return { job: toCaptionJob(job), subtitle: await subtitleRecord(app, asset, subtitle) };
    });
  },
});

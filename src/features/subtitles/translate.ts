import { type App, forApp } from "#app.ts";
import { abortAfter, clientClosed, HttpError, invalid, runInSlices } from "#lib/base";
import { withPayloads } from "#lib/subtitles";
import { metricsOf } from "#platform/http/metrics.ts";
import { reshapedVtt } from "#platform/outbound/transcribe/speech-text.ts";
import { configuredTranslator } from "#platform/outbound/translate/configured.ts";
import { translatePayloads } from "#platform/outbound/translate/payloads.ts";
import { PairUnknown, TranslationFailed, type Translator } from "#platform/outbound/translate/translator.ts";
import { parseDocument } from "#platform/parsing/parse-document.ts";
import type { SubtitleRow } from "#storage/db/schema.ts";
import { subtitleContent } from "./content.ts";

/** The timeout for a whole track, in timeouts of one request. */
const WHOLE_TRACK = 5;
const SUFFIX = " (auto translated)";

const translators = forApp((app) => ({ configured: configuredTranslator(app.config) }));

export const isTranslationConfigured = async (app: App): Promise<boolean> =>
  (await translators(app).configured) !== null;

/** The translation service; throws 503 when none is configured. */
export async function translatorOf(app: App): Promise<Translator> {
  const configured = await translators(app).configured;
  if (configured) return configured;
  throw new HttpError(503, "translation_not_configured", "Translation is not configured on this server.");
}

const PLAIN_TIMES = /^\d{2,6}:\d\d:\d\d\.\d{3} --> \d{2,6}:\d\d:\d\d\.\d{3}$/;
const isPlainLine = (line: string) =>
  line.includes("-->") ? PLAIN_TIMES.test(line) : !/^(NOTE|STYLE|REGION)\b/.test(line) && !line.includes("<");

/** Whether a text has nothing but cues without markup and settings, as recognized speech has. */
const isPlain = (text: string): boolean => text.split("\n").every(isPlainLine);

/** The name of a translation of a translation contains only the last language. */
export const translatedLabel = (label: string): string => (label.endsWith(SUFFIX) ? label : `${label}${SUFFIX}`);

/**
 * Translates the text of a track; times and settings are unchanged. What was recognized is shaped again, because translations
 * have other lengths. Throws 422 `invalid_language`,
 * `document_too_complex`, 502 `translation_failed`.
 */
export async function translatedText(
  app: App,
  subtitle: SubtitleRow,
  target: string,
  left: AbortSignal,
): Promise<string> {
  const translator = await translatorOf(app);
  const source = await subtitleContent(app, subtitle);
  const parsing = { tenantId: subtitle.tenantId, signal: left };
  const { payloads, places } = await parseDocument(app, "payloads", { text: source }, parsing);
  const deadline = abortAfter(WHOLE_TRACK * app.config.translate_timeout_seconds * 1000);
  const signal = AbortSignal.any([app.stopping, deadline, left]);
  try {
    const pair = { source: subtitle.language, target };
    const translated = await translatePayloads(payloads, translator, { ...pair, signal });
    const text = await runInSlices(withPayloads(source, places, translated));
    return subtitle.source === "auto" && isPlain(source) ? await reshapedVtt(text) : text;
  } catch (error) {
    if (left.aborted) throw clientClosed();
    if (error instanceof PairUnknown)
      return invalid(
        "target_language",
        `the translation service does not translate from ${subtitle.language} to ${target}`,
        "invalid_language",
      );
    if (!(error instanceof TranslationFailed) && !signal.aborted) throw error;
    const reason = signal.aborted ? "timed out, or the server is stopping" : (error as Error).message;
    metricsOf(app).services.add("translation");
    app.log.warn({ subtitle_id: subtitle.id, target, reason }, "a translation failed");
    throw new HttpError(
      502,
      "translation_failed",
      "The translation service failed; nothing was changed. Try again later.",
    );
  }
}

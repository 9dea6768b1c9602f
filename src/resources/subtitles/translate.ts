import type { SubtitleRow } from "../../../storage/db/schema.ts";
import { type App, forApp } from "../../app.ts";
import { metricsOf } from "../../http/metrics.ts";
import { clientClosed, HttpError, invalid } from "../../lib/errors.ts";
import { runInSlices } from "../../lib/time-slices.ts";
import { withPayloads } from "../../lib/vtt/replace-texts.ts";
import { configuredTranslator } from "../../outbound/translate/configured.ts";
import { translatePayloads } from "../../outbound/translate/payloads.ts";
import { PairUnknown, TranslationFailed, type Translator } from "../../outbound/translate/translator.ts";
import { parseDocument } from "../../parsing/parse-document.ts";
import { subtitleContent } from "./content.ts";

/** Of the timeout of one request, so many for a whole track. */
const WHOLE_TRACK = 5;
const SUFFIX = " (auto translated)";

const translators = forApp((app) => ({ configured: configuredTranslator(app.config) }));

/** The translation service, or 503 where there is none. */
export function translatorOf(app: App): Translator {
  const { configured } = translators(app);
  if (configured) return configured;
  throw new HttpError(503, "translation_not_configured", "Translation is not configured on this server.");
}

/** A translation of a translation is translated no more than once, by its name. */
export const translatedLabel = (label: string): string => (label.endsWith(SUFFIX) ? label : `${label}${SUFFIX}`);

/**
 * What a track says, in another language, its times and settings untouched. 422 `invalid_language`,
 * `document_too_complex`, 502 `translation_failed`.
 */
export async function translatedText(
  app: App,
  subtitle: SubtitleRow,
  target: string,
  left: AbortSignal,
): Promise<string> {
  const translator = translatorOf(app);
  const source = await subtitleContent(app, subtitle);
  const parsing = { tenantId: subtitle.tenantId, signal: left };
  const { payloads, places } = await parseDocument(app, "payloads", { text: source }, parsing);
  const deadline = AbortSignal.timeout(WHOLE_TRACK * app.config.translate_timeout_seconds * 1000);
  const signal = AbortSignal.any([app.stopping, deadline, left]);
  try {
    const pair = { source: subtitle.language, target };
    const translated = await translatePayloads(payloads, translator, { ...pair, signal });
    return await runInSlices(withPayloads(source, places, translated));
  } catch (error) {
    if (left.aborted) throw clientClosed();
    if (error instanceof PairUnknown)
      return invalid(
        "target_language",
        `the translation service does not translate from ${subtitle.language} to ${target}`,
        "invalid_language",
      );
    if (!(error instanceof TranslationFailed) && !signal.aborted) throw error;
    const reason = signal.aborted ? "out of time, or the server stops" : (error as Error).message;
    metricsOf(app).services.add("translation");
    app.log.warn({ subtitle_id: subtitle.id, target, reason }, "a translation failed");
    throw new HttpError(
      502,
      "translation_failed",
      "The translation service failed; nothing was changed. Try again later.",
    );
  }
}

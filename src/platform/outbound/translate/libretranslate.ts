import * as v from "valibot";
import { batchesOf, inBatches } from "./batches.ts";
import { codeAmong, languageOf } from "./codes.ts";
import type { SendRequest, TranslationService } from "./service.ts";
import { type Pair, PairUnknown, TranslationFailed, type Translator } from "./translator.ts";

const Languages = v.array(v.object({ code: v.string(), targets: v.optional(v.array(v.string())) }));
const TranslateResponse = v.object({ translatedText: v.union([v.array(v.string()), v.string()]) });
/** The default batch limit of public servers; the time depends on the number of characters. */
const LIMITS = { count: 50, bytes: 10_000 };

/** LibreTranslate: `GET /languages`, `POST /translate` with an array. */
export const libreTranslate: TranslationService = { open: (ask, { translate_key: key }) => libreTranslateAt(ask, key) };

function libreTranslateAt(ask: SendRequest, key: string | undefined): Translator {
  const translate = async (q: string | string[], format: string, pair: Pair, signal: AbortSignal) => {
    const body = JSON.stringify({ q, ...pair, format, ...(key !== undefined && { api_key: key }) });
    const answer = v.safeParse(
      TranslateResponse,
      await ask("/translate", { headers: { "content-type": "application/json" }, body, signal }),
    );
    if (!answer.success) throw new TranslationFailed("The translation service sent an unexpected response.");
    return answer.output.translatedText;
  };
  return {
    async translate(texts, { source, target, markup, signal }) {
      const pair = await pairOf(ask, { source, target }, signal);
      const format = markup ? "html" : "text";
      return inBatches(batchesOf(texts, LIMITS), signal, async (batch, ended) => {
        const answer = await translate(batch, format, pair, ended);
        if (Array.isArray(answer)) return answer;
        // Old servers accept one text at a time, and would convert an array to a text.
        const singly: string[] = [];
        for (const text of batch) singly.push(String(await translate(text, format, pair, ended)));
        return singly;
      });
    },
  };
}

async function pairOf(ask: SendRequest, { source, target }: Pair, signal: AbortSignal): Promise<Pair> {
  const listed = await ask("/languages", { method: "GET", signal, attempts: 1 }).catch((error) => {
    signal.throwIfAborted();
    if (error instanceof TranslationFailed) return null;
    throw error;
  });
  const languages = v.safeParse(Languages, listed);
  if (!languages.success) return { source: languageOf(source), target: languageOf(target) };
  const from = codeAmong(
    languages.output.map(({ code }) => code),
    source,
  );
  const known = languages.output.find(({ code }) => code === from);
  const to = codeAmong(known?.targets ?? languages.output.map(({ code }) => code), target);
  if (from === null || to === null || from === to) throw new PairUnknown();
  return { source: from, target: to };
}

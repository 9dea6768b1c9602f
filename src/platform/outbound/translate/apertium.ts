import * as v from "valibot";
import { inBatches } from "./batches.ts";
import { codeAmong, languageOf } from "./codes.ts";
import type { SendRequest, TranslationService } from "./service.ts";
import { type Pair, PairUnknown, TranslationFailed, type Translator } from "./translator.ts";

const Pairs = v.object({
  responseData: v.array(v.object({ sourceLanguage: v.string(), targetLanguage: v.string() })),
});
const TranslateResponse = v.object({ responseData: v.object({ translatedText: v.string() }) });

/** Apertium's APY: `GET /listPairs`, and `/translate` with one text at a time, which takes it some milliseconds. */
export const apertium: TranslationService = { open: (ask, { translate_key: key }) => apertiumAt(ask, key) };

function apertiumAt(ask: SendRequest, key: string | undefined): Translator {
  return {
    async translate(texts, { source, target, markup, signal }) {
      const pair = await pairOf(ask, { source, target }, signal);
      return inBatches(
        texts.map((text) => [text]),
        signal,
        async ([q = ""], ended) => {
          const form = new URLSearchParams({
            langpair: `${pair.source}|${pair.target}`,
            q,
            markUnknown: "no",
            format: markup ? "html" : "txt",
            ...(key !== undefined && { key }),
          });
          const headers = { "content-type": "application/x-www-form-urlencoded" };
          const answer = v.safeParse(
            TranslateResponse,
            await ask("/translate", { headers, body: form.toString(), signal: ended }),
          );
          if (!answer.success) throw new TranslationFailed("The translation service sent an unexpected response.");
          return [answer.output.responseData.translatedText];
        },
      );
    },
  };
}

async function pairOf(ask: SendRequest, { source, target }: Pair, signal: AbortSignal): Promise<Pair> {
  const listed = await ask("/listPairs", { method: "GET", signal, attempts: 1 }).catch((error) => {
    signal.throwIfAborted();
    if (error instanceof TranslationFailed) return null;
    throw error;
  });
  const pairs = v.safeParse(Pairs, listed);
  if (!pairs.success) return { source: languageOf(source), target: languageOf(target) };
  const all = pairs.output.responseData;
  const from = codeAmong(
    all.map((each) => each.sourceLanguage),
    source,
  );
  const targets = all.filter((each) => each.sourceLanguage === from).map((each) => each.targetLanguage);
  const to = codeAmong(targets, target);
  if (from === null || to === null || from === to) throw new PairUnknown();
  return { source: from, target: to };
}

import * as v from "valibot";
import { batchesOf, inBatches } from "./batches.ts";
import { codeAmong, languageOf } from "./codes.ts";
import type { SendRequest, TranslationService } from "./service.ts";
import { type Pair, PairUnknown, TranslationFailed, type Translator } from "./translator.ts";

const Languages = v.array(v.object({ language: v.string() }));
const TranslateResponse = v.object({ translations: v.array(v.object({ text: v.string() })) });
/** 50 texts and 128 KiB per request, minus an allowance for the rest of the body. */
const LIMITS = { count: 50, bytes: 100_000 };
/** As targets, these languages need a variant; the others have a single form or a default. */
const TARGET_OF_LANGUAGE: Record<string, string> = { en: "EN-US", pt: "PT-PT", zh: "ZH-HANS" };

/** DeepL API v2: `GET /v2/languages`, `POST /v2/translate`. */
export const deepl: TranslationService = {
  /** Keys of the free plan end with `:fx`. */
  publicUrl: (key) => (key.endsWith(":fx") ? "https://api-free.deepl.com" : "https://api.deepl.com"),
  open: (ask, { translate_key: key }) => deeplAt(ask, key),
};

function deeplAt(ask: SendRequest, key: string | undefined): Translator {
  const authorization = `DeepL-Auth-Key ${key ?? ""}`;
  return {
    async translate(texts, { source, target, markup, signal }) {
      const pair = await pairOf(ask, { source, target }, authorization, signal);
      return inBatches(batchesOf(texts, LIMITS), signal, async (text, ended) => {
        const body = JSON.stringify({
          text,
          source_lang: pair.source,
          target_lang: pair.target,
          ...(markup && { tag_handling: "xml" }),
        });
        const headers = { "content-type": "application/json", authorization };
        const answer = v.safeParse(TranslateResponse, await ask("/v2/translate", { headers, body, signal: ended }));
        if (!answer.success) throw new TranslationFailed("The translation service sent an unexpected response.");
        return answer.output.translations.map((each) => each.text);
      });
    },
  };
}

async function pairOf(
  ask: SendRequest,
  { source, target }: Pair,
  authorization: string,
  signal: AbortSignal,
): Promise<Pair> {
  // Source languages have no variants: EN is American and British English.
  const from = languageOf(source).toUpperCase();
  const listed = await ask("/v2/languages?type=target", {
    method: "GET",
    headers: { authorization },
    signal,
    attempts: 1,
  }).catch((error) => {
    signal.throwIfAborted();
    if (error instanceof TranslationFailed) return null;
    throw error;
  });
  const plain = TARGET_OF_LANGUAGE[target];
  const languages = v.safeParse(Languages, listed);
  if (!languages.success) return { source: from, target: plain ?? target.toUpperCase() };
  const known = languages.output.map(({ language }) => language);
  // Where a language is requested and only variants are known, the most spoken one is used.
  const to = codeAmong(known, target) ?? codeAmong(known, TARGET_OF_LANGUAGE[languageOf(target)] ?? target);
  if (to === null) throw new PairUnknown();
  return { source: from, target: plain !== undefined && known.includes(plain) ? plain : to };
}

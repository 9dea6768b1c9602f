import * as v from "valibot";
import { batchesOf, inBatches } from "./batches.ts";
import { codeAmong, languageOf } from "./codes.ts";
import type { SendRequest } from "./service.ts";
import { type Pair, PairUnknown, TranslationFailed, type Translator } from "./translator.ts";

const Languages = v.array(v.object({ language: v.string() }));
const Answer = v.object({ translations: v.array(v.object({ text: v.string() })) });
/** 50 texts and 128 KiB a request, with room for the rest of the body. */
const LIMITS = { count: 50, bytes: 100_000 };
/** It translates into these only when told which; the others have one form, or one that is meant. */
const TARGET_OF_LANGUAGE: Record<string, string> = { en: "EN-US", pt: "PT-PT", zh: "ZH-HANS" };

/** Keys of the free plan say so at their end. */
export const deeplAddress = (key: string) =>
  key.endsWith(":fx") ? "https://api-free.deepl.com" : "https://api.deepl.com";

/** DeepL, version 2 of its interface: `GET /v2/languages`, `POST /v2/translate`. */
export function deepl(ask: SendRequest, key: string | undefined): Translator {
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
        const answer = v.safeParse(Answer, await ask("/v2/translate", { headers, body, signal: ended }));
        if (!answer.success) throw new TranslationFailed("The translation service answered something else than texts.");
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
  // A source has no variants: EN is American and British English alike.
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
  // Where a language is asked for and only variants are known, the most spoken one is meant.
  const to = codeAmong(known, target) ?? codeAmong(known, TARGET_OF_LANGUAGE[languageOf(target)] ?? target);
  if (to === null) throw new PairUnknown();
  return { source: from, target: plain !== undefined && known.includes(plain) ? plain : to };
}

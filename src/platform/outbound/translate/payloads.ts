import { runInSlices, type Sliced } from "#lib/base";
import {
  breakLines,
  escapeText,
  fragmentOf,
  fromFragment,
  type Part,
  type Piece,
  partsOf,
  plainOf,
  type Sentence,
} from "#lib/subtitles";
import { type Pair, TranslationFailed, type Translator } from "./translator.ts";

const LETTER = /\p{L}/u;

/**
 * Translates WebVTT payloads. Tags, entities and the number of lines are preserved; the text of one speaker is
 * translated as one sentence. When tags are not returned correctly, the texts between them are translated separately.
 */
export async function translatePayloads(
  payloads: readonly string[],
  translator: Translator,
  options: Pair & { signal: AbortSignal },
): Promise<string[]> {
  const split = await runInSlices(each(payloads, partsOf));
  const sentences = split.flat().filter((part): part is Sentence => typeof part !== "string");
  const translate = (texts: ReadonlySet<string>, markup: boolean) =>
    translateOnce(translator, texts, { ...options, markup });
  const done = new Map<Sentence, string>();

  const plain = (await runInSlices(each(sentences, plainOf))).map((text, index) => ({ text, index }));
  const spoken = plain.filter((one): one is { text: string; index: number } => one.text !== null);
  const texts = await translate(new Set(spoken.map(({ text }) => text)), false);
  const keepText = ({ text, index }: { text: string; index: number }) =>
    done.set(sentences[index] as Sentence, escapeText(texts.get(text) as string));
  await runInSlices(each(spoken, keepText));

  const marked = sentences.filter((one) => !done.has(one));
  const xml = await runInSlices(each(marked, fragmentOf));
  const fragments = await translate(new Set(xml), true);
  const keepFragment = (sentence: Sentence, index: number) => {
    const payload = fromFragment(fragments.get(xml[index] as string) as string, sentence);
    if (payload !== null) done.set(sentence, payload);
  };
  await runInSlices(each(marked, keepFragment));

  const torn = marked.filter((one) => !done.has(one));
  const words = await runInSlices(each(torn, ({ pieces }) => pieces.map(wordsIn).filter((text) => text !== "")));
  const pieces = await translate(new Set(words.flat()), false);
  await runInSlices(each(torn, (sentence) => done.set(sentence, inPieces(sentence, pieces))));
  return runInSlices(each(split, (parts) => joined(parts, done)));
}

/** `map` in slices. */
function* each<T, R>(all: readonly T[], work: (one: T, index: number) => R): Sliced<R[]> {
  const results: R[] = [];
  for (const [index, one] of all.entries()) {
    results.push(work(one, index));
    // A payload of 5,000 characters may take milliseconds.
    yield;
  }
  return results;
}

const joined = (parts: readonly Part[], done: ReadonlyMap<Sentence, string>) =>
  parts
    .map((part) => {
      if (typeof part === "string") return part;
      const terminator = part.pieces.find(({ raw }) => /^[\r\n]+$/.test(raw))?.raw ?? "\n";
      return breakLines(done.get(part) as string, part.lines, terminator);
    })
    .join("");

const wordsIn = (piece: Piece) => (piece.kind === "text" && LETTER.test(piece.text) ? piece.text.trim() : "");

/** Translates each text between tags separately, with its surrounding spaces. */
const inPieces = ({ pieces }: Sentence, translated: ReadonlyMap<string, string>) =>
  pieces
    .map((piece) => {
      if (piece.kind === "tag") return piece.raw;
      const words = wordsIn(piece);
      return escapeText(words === "" ? piece.text : piece.text.replace(words, () => translated.get(words) as string));
    })
    .join("");

/** The translation of every text; throws when one is empty. */
async function translateOnce(
  translator: Translator,
  texts: ReadonlySet<string>,
  options: Parameters<Translator["translate"]>[1],
): Promise<Map<string, string>> {
  const unique = [...texts];
  if (unique.length === 0) return new Map();
  const answered = await translator.translate(unique, options);
  const became = new Map<string, string>();
  const keep = (text: string, index: number) => {
    const clean = text
      .toWellFormed()
      .replaceAll(/[\s\p{Cc}]+/gu, " ")
      .trim();
    if (clean === "") throw new TranslationFailed("The translation service returned an empty text.");
    became.set(unique[index] as string, clean);
  };
  await runInSlices(each(answered, keep));
  return became;
}

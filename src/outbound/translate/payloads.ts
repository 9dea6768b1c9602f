import { breakLines } from "../../lib/cue-text/break-lines.ts";
import { escapeText, fragmentOf, fromFragment, plainOf } from "../../lib/cue-text/fragment.ts";
import { type Part, type Piece, partsOf, type Sentence } from "../../lib/cue-text/sentences.ts";
import { inSlices, type Sliced } from "../../lib/in-slices.ts";
import { type Pair, TranslationFailed, type Translator } from "./translator.ts";

const PER_STEP = 20;
const LETTER = /\p{L}/u;

/**
 * WebVTT payloads in another language. Tags, entities and the number of lines stay; what one person says is translated
 * as one sentence. Where tags do not come back as they should, what stands between them is translated piece by piece.
 */
export async function translatePayloads(
  payloads: readonly string[],
  translator: Translator,
  { signal, ...pair }: Pair & { signal: AbortSignal },
): Promise<string[]> {
  const split = await inSlices(splitting(payloads));
  const sentences = split.flat().filter((part): part is Sentence => typeof part !== "string");
  const translate = (texts: Iterable<string>, markup: boolean) =>
    translateOnce(translator, texts, { ...pair, markup, signal });

  const done = new Map<Sentence, string>();
  const plain = new Map(sentences.flatMap((one) => [[one, plainOf(one)] as const]).filter(hasText));
  const texts = await translate(plain.values(), false);
  for (const [sentence, text] of plain) done.set(sentence, escapeText(texts.get(text) as string));

  const marked = new Map(sentences.filter((one) => !plain.has(one)).map((one) => [one, fragmentOf(one)] as const));
  const fragments = await translate(marked.values(), true);
  for (const [sentence, fragment] of marked) {
    const payload = fromFragment(fragments.get(fragment) as string, sentence);
    if (payload !== null) done.set(sentence, payload);
  }

  const torn = sentences.filter((one) => !done.has(one));
  const pieces = await translate(
    torn.flatMap((one) => one.pieces.map(wordsIn).filter((words) => words !== "")),
    false,
  );
  for (const sentence of torn) done.set(sentence, inPieces(sentence, pieces));
  return inSlices(joining(split, done));
}

const hasText = (entry: readonly [Sentence, string | null]): entry is readonly [Sentence, string] => entry[1] !== null;

function* splitting(payloads: readonly string[]): Sliced<Part[][]> {
  const all: Part[][] = [];
  for (const [index, payload] of payloads.entries()) {
    all.push(partsOf(payload));
    if (index % PER_STEP === 0) yield;
  }
  return all;
}

function* joining(split: readonly Part[][], done: ReadonlyMap<Sentence, string>): Sliced<string[]> {
  const payloads: string[] = [];
  for (const [index, parts] of split.entries()) {
    const whole = parts.map((part) => {
      if (typeof part === "string") return part;
      const terminator = part.pieces.find(({ raw }) => /^[\r\n]+$/.test(raw))?.raw ?? "\n";
      return breakLines(done.get(part) as string, part.lines, terminator);
    });
    payloads.push(whole.join(""));
    if (index % PER_STEP === 0) yield;
  }
  return payloads;
}

const wordsIn = (piece: Piece) => (piece.kind === "text" && LETTER.test(piece.text) ? piece.text.trim() : "");

/** Between its tags, each text by itself, with the blanks that it had around it. */
const inPieces = ({ pieces }: Sentence, translated: ReadonlyMap<string, string>) =>
  pieces
    .map((piece) => {
      if (piece.kind === "tag") return piece.raw;
      const words = wordsIn(piece);
      return escapeText(words === "" ? piece.text : piece.text.replace(words, () => translated.get(words) as string));
    })
    .join("");

/** Each different text once. Answers what every text became; throws where that is nothing. */
async function translateOnce(
  translator: Translator,
  texts: Iterable<string>,
  options: Parameters<Translator["translate"]>[1],
): Promise<Map<string, string>> {
  const asked = [...new Set(texts)];
  if (asked.length === 0) return new Map();
  const answered = await translator.translate(asked, options);
  const clean = answered.map((text) =>
    text
      .toWellFormed()
      .replaceAll(/[\s\p{Cc}]+/gu, " ")
      .trim(),
  );
  if (clean.includes("")) throw new TranslationFailed("The translation service answered an empty text.");
  return new Map(asked.map((text, index) => [text, clean[index] as string]));
}

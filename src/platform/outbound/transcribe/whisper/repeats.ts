import { HOP_MS } from "./activity.ts";
import { normalized, type TimedWord } from "./words.ts";

/**
 * Whisper invents text where no one speaks: it repeats a phrase until the window is full, or writes what often ended the
 * subtitles that it was trained with. Both are recognized by form, because the engine reports no probabilities.
 */

/** Phrases that are known to be invented in silence and music. They are dropped only where nothing else was said. */
const INVENTED = new Set(
  [
    "Thank you.",
    "Thank you very much.",
    "Thanks for watching!",
    "Thank you for watching.",
    "Please subscribe.",
    "Subtitles by the Amara.org community",
    "you",
    "Bye.",
    "Untertitel der Amara.org-Community",
    "Untertitel im Auftrag des ZDF für funk, 2017",
    "Vielen Dank.",
    "Sous-titres réalisés par la communauté d'Amara.org",
    "Sous-titres réalisés para la communauté d'Amara.org",
    "Merci d'avoir regardé cette vidéo !",
    "Subtítulos realizados por la comunidad de Amara.org",
    "Gracias por ver el video.",
    "Sottotitoli creati dalla comunità Amara.org",
    "Legendas pela comunidade Amara.org",
    "Napisy stworzone przez społeczność Amara.org",
    "Редактор субтитров А.Семкин Корректор А.Егорова",
    "Продолжение следует...",
    "ご視聴ありがとうございました",
    "字幕由Amara.org社区提供",
    "请不吝点赞 订阅 转发 打赏支持明镜与点点栏目",
    "시청해주셔서 감사합니다.",
  ].map(normalized),
);

/** A part that is shorter may really consist of thanks. */
const LONG_MS = 8000;
/** Words of the longest phrase whose repetition is looked for. */
const PHRASE_WORDS = 16;
/** People do not repeat a phrase of so many words so often. */
const leastRepeats = (words: number) => (words === 1 ? 6 : words === 2 ? 4 : 3);
/** A loop of this share of the part's words is all that there is. */
const LOOP_SHARE = 0.8;

/** The words of one part without what was invented. `durationMs`: of the part. */
export function withoutInvented(words: readonly TimedWord[], durationMs: number): TimedWord[] {
  const { rest, looped } = withoutLoops(words);
  const all = normalized(rest.map((word) => word.text).join(""));
  const isLoop = looped >= words.length * LOOP_SHARE;
  return INVENTED.has(all) && (isLoop || durationMs >= LONG_MS) ? [] : rest;
}

/** The first of the phrases that are repeated in a loop stays: it may have been said. */
function withoutLoops(words: readonly TimedWord[]): { rest: TimedWord[]; looped: number } {
  const texts = words.map((word) => normalized(word.text));
  const rest: TimedWord[] = [];
  let looped = 0;
  for (let at = 0; at < words.length; ) {
    const loop = loopAt(texts, at);
    rest.push(...words.slice(at, at + (loop?.words ?? 1)));
    at += loop ? loop.words * loop.repeats : 1;
    if (loop) looped += loop.words * loop.repeats;
  }
  return { rest, looped };
}

function loopAt(texts: readonly string[], at: number): { words: number; repeats: number } | null {
  for (let words = 1; words <= PHRASE_WORDS && at + words * leastRepeats(words) <= texts.length; words++) {
    let same = 0;
    while (at + words + same < texts.length && texts[at + same] === texts[at + words + same]) same++;
    const repeats = 1 + Math.floor(same / words);
    if (repeats >= leastRepeats(words)) return { words, repeats };
  }
  return null;
}

/** Without words in complete silence, except within this distance of activity. */
const NEAR_MS = 500;

/** Words where something is heard. */
export const audibleWords = (words: readonly TimedWord[], active: Uint8Array): TimedWord[] =>
  words.filter((word) => {
    const from = Math.max(0, Math.floor((word.startMs - NEAR_MS) / HOP_MS));
    const to = Math.max(from + 1, Math.ceil((word.endMs + NEAR_MS) / HOP_MS));
    return active.subarray(from, to).includes(1);
  });

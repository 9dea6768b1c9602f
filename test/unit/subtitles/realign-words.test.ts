import { expect, test } from "vitest";
import { runToEnd } from "#src/lib/base/sliced.ts";
import { realignedWords, type TimedWord } from "#src/lib/subtitles/align/realign-words.ts";

/** Words of 100 ms each, one after the other from `startMs`. */
const said = (text: string, startMs = 0): TimedWord[] =>
  text
    .split(" ")
    .map((word, at) => ({ text: word, startMs: startMs + at * 100, endMs: startMs + at * 100 + 100, confidence: 0.5 }));
const cue = (text: string, startMs = 0, endMs = 1000) => ({ text, startMs, endMs });
/** `word start-end`, with `?` where the confidence of the engine is kept. */
const shown = (words: readonly TimedWord[]) =>
  words.map(
    ({ text, startMs, endMs, confidence }) => `${text} ${startMs}-${endMs}${confidence === undefined ? "" : "?"}`,
  );

test.each<[string, ReturnType<typeof cue>[], TimedWord[], string[]]>([
  ["the same text", [cue("one two three")], said("one two three"), ["one 0-100?", "two 100-200?", "three 200-300?"]],
  [
    "case, punctuation and markup",
    [cue("<i>One</i>, two\nThree!")],
    said("one two three"),
    ["One, 0-100?", "two 100-200?", "Three! 200-300?"],
  ],
  ["a corrected word", [cue("one too three")], said("one two three"), ["one 0-100?", "too 100-200", "three 200-300?"]],
  [
    "a word that becomes two",
    [cue("one abcd ef three")],
    said("one two three"),
    ["one 0-100?", "abcd 100-167", "ef 167-200", "three 200-300?"],
  ],
  [
    "two words that become one",
    [cue("one three four")],
    said("one two three four"),
    ["one 0-100?", "three 200-300?", "four 300-400?"],
  ],
  [
    "a first and a last word",
    [cue("a one two b")],
    said("one two", 500),
    ["a 0-500", "one 500-600?", "two 600-700?", "b 700-1000"],
  ],
  [
    "a cue that was split",
    [cue("one two", 0, 200), cue("three four", 200, 400)],
    said("one two three four"),
    ["one 0-100?", "two 100-200?", "three 200-300?", "four 300-400?"],
  ],
  [
    "a cue that was moved",
    [cue("one two three", 60_000, 61_000)],
    said("one two three"),
    ["one 60000-60100?", "two 60100-60200?", "three 60200-60300?"],
  ],
  [
    "words that were moved into the next cue",
    [cue("one", 0, 1500), cue("and then we go home", 3000, 6000)],
    [...said("one and then", 800), ...said("we go", 3200), ...said("home", 5500)],
    ["one 800-900?", "and 900-1000?", "then 1000-1100?", "we 3200-3300?", "go 3300-3400?", "home 5500-5600?"],
  ],
  [
    "a word that was moved into the cue before",
    [cue("one two three", 0, 1500), cue("four", 4000, 6000)],
    [...said("one two", 200), ...said("three four", 4000)],
    ["one 200-300?", "two 300-400?", "three 4000-4100?", "four 4100-4200?"],
  ],
  [
    "a word with several parts",
    [cue("one well-known two")],
    said("one well known two"),
    ["one 0-100?", "well-known 100-300", "two 300-400?"],
  ],
  [
    "Japanese",
    [cue("今日は雨だ")],
    [
      { text: "今日", startMs: 0, endMs: 100 },
      { text: "は", startMs: 100, endMs: 200 },
      { text: "雪", startMs: 200, endMs: 300 },
      { text: "だ", startMs: 300, endMs: 400 },
    ],
    ["今日 0-100", "は 100-200", "雨 200-300", "だ 300-400"],
  ],
  ["another text", [cue("nothing of it")], said("one two three"), []],
  ["no text", [], said("one"), []],
])("%s", (_name, cues, words, expected) => expect(shown(runToEnd(realignedWords(cues, words)))).toEqual(expected));

test("ten thousand words with a correction in each cue keep the times of the others", () => {
  const words = said(Array.from({ length: 10_000 }, (_, at) => `word${at}`).join(" "));
  const cues = Array.from({ length: 1000 }, (_, at) => {
    const own = words.slice(at * 10, at * 10 + 10).map(({ text }, index) => (index === 5 ? "corrected" : text));
    return cue(own.join(" "), at * 1000, at * 1000 + 1000);
  });
  const edited = runToEnd(realignedWords(cues, words));
  expect(edited.map(({ startMs }) => startMs)).toEqual(words.map(({ startMs }) => startMs));
  expect(edited.filter(({ confidence }) => confidence === undefined)).toHaveLength(1000);
});

import { describe, expect, test } from "vitest";
import { openCues } from "#web/console/pages/asset/cue-document.ts";
import {
  type Match,
  matchBehind,
  matchesOf,
  type SpokenWord,
  uncertainOf,
  withMerged,
  withReplaced,
  withSplit,
} from "#web/console/pages/asset/cue-edits.ts";
import { type EditHistory, edited, NO_EDITS, redone, undone } from "#web/console/pages/asset/edit-history.ts";

const HEAD = "WEBVTT\r\n\r\nNOTE kept\r\n\r\n";
const FIRST = "one\r\n00:00:01.000 --> 00:00:03.000 line:0\r\n";
const SECOND = "\r\n\r\nNOTE between\r\n\r\n00:00:04.000 --> 00:00:05.000\r\nLast words\r\n";
const documentOf = (text: string) => openCues(`${HEAD}${FIRST}${text}${SECOND}`);
const shown = (document: ReturnType<typeof openCues> | null) =>
  document?.cues.map(({ startMs, endMs, settings, text }) => [startMs, endMs, settings, text]);
const LAST = [4000, 5000, "", "Last words"];

describe("a cue is split", () => {
  test.each<[name: string, text: string, before: string, halves: [string, string], ms: number]>([
    ["in proportion to its letters", "abcd efgh", "abcd", ["abcd", "efgh"], 2000],
    ["within a word", "abcdefgh", "ab", ["ab", "cdefgh"], 1500],
    ["between lines", "abcd\r\nefgh", "abcd\n", ["abcd", "efgh"], 2000],
    ["within a tag that stays on both sides", "<i>abcd efgh</i>", "<i>abcd", ["<i>abcd</i>", "<i>efgh</i>"], 2000],
    ["after the tag that the cursor is in", "abcd <v Ann>efgh</v>", "abcd <v", ["abcd", "<v Ann>efgh</v>"], 2000],
    ["between tags that end", "<b>abcd</b> <i>efgh</i>", "<b>abcd</b>", ["<b>abcd</b>", "<i>efgh</i>"], 2000],
  ])("%s", (_name, text, before, [first, second], ms) => {
    const split = withSplit(documentOf(text), 0, { at: before.length, words: [] });
    expect(shown(split)).toEqual([[1000, ms, "line:0", first], [ms, 3000, "line:0", second], LAST]);
    expect(split?.source).toContain("NOTE between");
  });

  test("where its words are said, if these are known", () => {
    const words: SpokenWord[] = [
      { text: "abcd", start_ms: 1000, end_ms: 1200 },
      { text: "efgh", start_ms: 1300, end_ms: 2900 },
    ];
    expect(shown(withSplit(documentOf("abcd efgh"), 0, { at: 4, words }))?.[1]?.[0]).toBe(1300);
    // Words that do not fit to the text say nothing.
    expect(shown(withSplit(documentOf("abcd efgh"), 0, { at: 4, words: words.slice(1) }))?.[1]?.[0]).toBe(2000);
  });

  test.each([
    ["abcd", 0],
    ["abcd", 4],
    ["<i>abcd</i>", 3],
    [" abcd", 1],
  ])("but not %j at %i", (text, at) => expect(withSplit(documentOf(text), 0, { at, words: [] })).toBe(null));
});

test("cues are merged, and what is between them stays", () => {
  const merged = withMerged(documentOf("First words"), 0);
  expect(shown(merged)).toEqual([[1000, 5000, "line:0", "First words\nLast words"]]);
  expect(merged.source).toContain("NOTE between");
  expect(merged.faults).toEqual([]);
  expect(withMerged(merged, 0)).toBe(merged);
});

test("text is found and replaced in all cues", () => {
  const document = documentOf("Words, WORDS (words)");
  const search = { text: "words", isExact: false };
  expect(matchesOf(document, search).map(({ cue, from }) => [cue, from])).toEqual([
    [0, 0],
    [0, 7],
    [0, 14],
    [1, 5],
  ]);
  expect(matchesOf(document, { text: "words", isExact: true })).toHaveLength(2);
  expect(matchesOf(document, { text: "(words)", isExact: true })).toHaveLength(1);
  expect(matchesOf(document, { text: "", isExact: false })).toEqual([]);
  const replaced = withReplaced(document, matchesOf(document, search), "a $& --> b");
  expect(shown(replaced)?.map((one) => one[3])).toEqual([
    "a $& --&gt; b, a $& --&gt; b (a $& --&gt; b)",
    "Last a $& --&gt; b",
  ]);
  const [, second] = matchesOf(document, search);
  expect(shown(withReplaced(document, second ? [second] : [], "x"))?.[0]?.[3]).toBe("Words, x (words)");
});

test.each<[name: string, search: string, text: string, replacement: string, at: number, next: [number, number]]>([
  ["a longer text that contains it", "ann", "ann, ann", "anna", 0, [0, 6]],
  ["a text that it equals but for case", "words", "Words, words", "Words", 0, [0, 7]],
  ["a text that is written with other characters", "w", "w and w", "-->", 0, [0, 11]],
  ["nothing", "ab", "ababab", "", 1, [0, 2]],
  ["the last one of a cue", "words", "a words", "swords", 0, [1, 5]],
  ["the last one of all", "words", "a words", "words", 1, [0, 2]],
])("replacing continues behind %s", (_name, find, text, replacement, at, expected) => {
  const search = { text: find, isExact: false };
  const document = documentOf(text);
  const match = matchesOf(document, search)[at] as Match;
  const next = withReplaced(document, [match], replacement);
  const [before = "", after = ""] = [document, next].map(({ cues }) => cues[match.cue]?.text);
  const matches = matchesOf(next, search);
  const { cue, from } = matches[matchBehind(matches, match, { before, after })] as Match;
  expect([cue, from]).toEqual(expected);
});

test("cues are marked whose words recognition was not certain of, until these are corrected", () => {
  const word = (text: string, start_ms: number, confidence?: number) => ({
    text,
    start_ms,
    end_ms: start_ms + 100,
    confidence,
  });
  const words = [
    word("First", 1000, 0.9),
    word("words", 1500, 0.3),
    word("words", 1700, 0.2),
    word("gone", 2000, 0.1),
    word("Last", 4000),
    word("words", 4500, 0.59),
  ];
  expect([...uncertainOf(documentOf("First words"), words)]).toEqual([
    [0, ["words"]],
    [1, ["words"]],
  ]);
  expect([...uncertainOf(documentOf("First verbs"), words)]).toEqual([[1, ["words"]]]);
});

test("edits are undone and redone in steps, and only so many are kept", () => {
  let history: EditHistory = NO_EDITS;
  history = edited(history, "", "word 1");
  history = edited(history, "a", "word 1");
  history = edited(history, "ab", "word 2");
  const first = undone(history, "ab c");
  expect(first?.text).toBe("ab");
  const second = undone(first?.history as EditHistory, "ab");
  expect([second?.text, undone(second?.history as EditHistory, "")]).toEqual(["", null]);
  expect(redone(second?.history as EditHistory, "")?.text).toBe("ab");
  expect(redone(edited(first?.history as EditHistory, "ab", null), "x")).toBe(null);
  for (let n = 0; n < 300; n++) history = edited(history, String(n), null);
  expect(history.past).toHaveLength(200);
  for (let n = 0; n < 30; n++) history = edited(history, "x".repeat(2_000_000), null);
  expect(history.past.length).toBeLessThan(25);
});

import { describe, expect, test } from "vitest";
import { breakLines } from "#src/lib/subtitles/cue-text/break-lines.ts";
import { fragmentOf, fromFragment, plainOf } from "#src/lib/subtitles/cue-text/fragment.ts";
import { type Part, partsOf, type Sentence } from "#src/lib/subtitles/cue-text/sentences.ts";
import { fc } from "#test/support/property.ts";

const shown = (part: Part) =>
  typeof part === "string" ? part : { send: plainOf(part) ?? fragmentOf(part), lines: part.lines };
const parts = (payload: string) =>
  partsOf(payload)
    .map(shown)
    .filter((part) => part !== "");
const raw = (part: Part) => (typeof part === "string" ? part : part.pieces.map((piece) => piece.raw).join(""));

test.each<[string, ReturnType<typeof parts>]>([
  ["Hello", [{ send: "Hello", lines: 1 }]],
  ["One sentence\nin two lines", [{ send: "One sentence in two lines", lines: 2 }]],
  ["<i>All of it</i>", ["<i>", { send: "All of it", lines: 1 }, "</i>"]],
  ["<v Fred Smith>Hi &amp; hello", ["<v Fred Smith>", { send: "Hi & hello", lines: 1 }]],
  ["- Who?\n- Me.", ["- ", { send: "Who?", lines: 1 }, "\n", "- ", { send: "Me.", lines: 1 }]],
  [
    "<i>- Who\nis it?\r\n- Me.</i>",
    ["<i>- ", { send: "Who is it?", lines: 2 }, "\r\n", "- ", { send: "Me.", lines: 1 }, "</i>"],
  ],
  [
    "<v A>Who?</v>\n<v B>Me.</v>",
    ["<v A>", { send: "Who?", lines: 1 }, "</v>", "\n", "<v B>", { send: "Me.", lines: 1 }, "</v>"],
  ],
  ["A <b>big</b> red <c.x.y>dog</c>", [{ send: 'A <g id="1">big</g> red <g id="2">dog</g>', lines: 1 }]],
  ["<i>Yes</i> and no", [{ send: '<g id="1">Yes</g> and no', lines: 1 }]],
  ["<00:00:01.000>Now <00:00:02.000>then", ["<00:00:01.000>", { send: 'Now <x id="1"/>then', lines: 1 }]],
  ["a </b> < b &lt;3 &bogus;", [{ send: "a", lines: 1 }, " </b> < b &lt;3 &bogus;"]],
  ["♪ ♪\n1984!", ["♪ ♪\n1984!"]],
  ["<i></i>", ["<i></i>"]],
  ["- ", ["- "]],
  ["– <i>Why?</i>", ["– ", "<i>", { send: "Why?", lines: 1 }, "</i>"]],
])("%j is sent as %j", (payload, expected) => {
  expect(parts(payload)).toEqual(expected);
});

test("the parts of a payload joined are the payload", () => {
  const bits = fc.constantFrom(
    "Hi",
    " ",
    "\n",
    "\r\n",
    "- ",
    "<i>",
    "</i>",
    "<b>",
    "</b>",
    "<v Al>",
    "<",
    ">",
    "&amp;",
    "&",
    "<00:01.000>",
    "é",
    "!",
  );
  fc.assert(
    fc.property(fc.array(bits, { maxLength: 14 }), (list) => {
      const payload = list.join("");
      const found = partsOf(payload);
      expect(found.map(raw).join("")).toBe(payload);
      for (const part of found) {
        if (typeof part === "string" || plainOf(part) !== null) continue;
        // A text that a service returns unchanged equals the original, except for spaces and the spelling of its
        // entities.
        expect(fromFragment(fragmentOf(part), part)).not.toBeNull();
      }
    }),
    { numRuns: 2000 },
  );
});

describe("a translated fragment", () => {
  const [sentence] = partsOf("Now A <b>big</b> <00:00:02.000>dog &amp; I").filter(
    (part): part is Sentence => typeof part !== "string",
  );
  const back = (translated: string) => fromFragment(translated, sentence as Sentence);
  test.each([
    [
      'Jetzt ein <g id="1">großer</g> <x id="2"/>Hund &amp; ich',
      "Jetzt ein <b>großer</b> <00:00:02.000>Hund &amp; ich",
    ],
    ["a <G ID='1'>b</G> <x id=2></x>c &gt; d --> e", "a <b>b</b> <00:00:02.000>c &gt; d --&gt; e"],
    ['<x id="2"/>a <g id="1">b</g>', null],
    ['a <g id="1">b</g>', null],
    ['a <g id="1">b <x id="2"/></g> c', null],
    ['a <g id="1">b</g> <x id="2"/><x id="2"/>', null],
    ['a <g id="1">b</g> <x id="2"/> <script>', null],
    ['a <g id="9">b</g> <x id="2"/>', null],
    ['a </g><g id="1">b <x id="2"/>', null],
    ["a b c", null],
  ])("%s becomes %s", (translated, payload) => {
    expect(back(translated)).toBe(payload);
  });
});

test.each([
  ["one two three four", 2, "one two\nthree four"],
  ["<v Fred Smith>one two", 2, "<v Fred Smith>one\ntwo"],
  // A tag contains no other <.
  ["a < b <i>c d</i>", 2, "a < b\n<i>c d</i>"],
  ["<<<< <a> b", 2, "<<<<\n<a> b"],
  ["oneword", 3, "oneword"],
  ["a b c", 9, "a\nb\nc"],
  ["これは長い字幕です", 2, "これは長\nい字幕です"],
  ["one two", 1, "one two"],
])("%s in %d lines", (text, lines, expected) => {
  expect(breakLines(text, lines, "\n")).toBe(expected);
});

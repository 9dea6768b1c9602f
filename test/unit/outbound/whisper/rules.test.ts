import { describe, expect, test } from "vitest";
import { activityOf, HOP_MS, stretchesOf } from "#platform/outbound/transcribe/whisper/activity.ts";
import { joined } from "#platform/outbound/transcribe/whisper/join.ts";
import { OVERLAP_MS, partsOf } from "#platform/outbound/transcribe/whisper/parts.ts";
import { audibleWords, withoutInvented } from "#platform/outbound/transcribe/whisper/repeats.ts";
import { LoopFilter, utterancesOf } from "#platform/outbound/transcribe/whisper/utterances.ts";
import { type TimedWord, type Token, wordsOf } from "#platform/outbound/transcribe/whisper/words.ts";

/** `Good@1200 morning@1500`: words with their starts; each lasts 200 ms. */
const words = (text: string): TimedWord[] =>
  text
    .split(" ")
    .filter(Boolean)
    .map((each) => {
      const [word = "", start = "0"] = each.split("@");
      return { text: word, startMs: Number(start), endMs: Number(start) + 200, isSpaced: true };
    });
const textOf = (given: readonly { text: string }[]) => given.map(({ text }) => text).join(" ");

describe("words from tokens", () => {
  const tokens = (...texts: string[]): Token[] =>
    texts.map((text, index) => ({ text, t0: index * 100, t1: index * 100 + 90 }));
  test.each([
    ["English", tokens(" Good", " mor", "ning", ",", " every", "body", "."), "Good morning, everybody."],
    [
      "German",
      tokens(" Die", " Donau", "dampf", "schiff", "fahrt", " –", " gut", "!"),
      "Die Donaudampfschifffahrt – gut!",
    ],
    ["Japanese, a word for each token", tokens("今日", "は", "いい", "天気", "です", "。"), "今日 は いい 天気 です。"],
    ["Chinese with Latin letters", tokens("我", "用", "GP", "U", "训练"), "我 用 GPU 训练"],
    ["Arabic", tokens(" مرح", "با", " بال", "عالم"), "مرحبا بالعالم"],
    [
      "empty tokens and notes about what is heard",
      tokens("", " [", "MUSIC", " PLAY", "ING", "]", " Hello", " (laughs)", " ♪"),
      "Hello",
    ],
    ["a lone dash stays", tokens(" a", " -", " b"), "a - b"],
  ])("%s", (_, given, expected) => {
    const found = wordsOf(given, given.map(({ text }) => text).join(""), 5000);
    expect(textOf(found)).toBe(expected);
    expect(
      found.every(
        (word, index) =>
          word.startMs >= 5000 &&
          word.endMs >= word.startMs &&
          (index === 0 || word.startMs >= (found[index - 1]?.startMs ?? 0)),
      ),
    ).toBe(true);
  });

  test("a character whose bytes are in two tokens is whole", () => {
    const given = tokens(" 안", "\ufffd", "\ufffd", "하세요", " 여러분");
    expect(textOf(wordsOf(given, " 안녕하세요 여러분", 0))).toBe("안녕하세요 여러분");
  });
});

describe("joining parts that overlap around 20 s", () => {
  test.each([
    [
      "both heard the same words",
      "a@18000 good@19200 morning@19600 all@20300",
      "good@19250 morning@19650 all@20350 b@21500",
      "a good morning all b",
    ],
    [
      "the second heard more of them",
      "a@18000 good@19200 morn@20800",
      "good@19250 morning@20100 all@20700 b@21500",
      "a good morning all b",
    ],
    ["a word at the cut, timed to different sides", "a@18000 now@20050", "now@19700 b@21000", "a now b"],
    ["timed further apart than two parts differ", "a@18000 now@20500", "now@19500 b@21400", "a now b"],
    [
      "the first ends with a piece of a word",
      "a@18000 tele@20700",
      "a2@19000 television@20650 b@21500",
      "a a2 television b",
    ],
    ["nothing in common", "a@18000 b@19000", "c@20400 d@21000", "a b c d"],
    ["a word that only the first heard, after the cut", "a@18000 oh@20500", "c@22000", "a oh c"],
    ["a word that only the second heard, before the cut", "a@18000", "oh@19300 c@22000", "a oh c"],
    ["words that were said twice", "no@19000 no@19400", "no@19000 no@19400 yes@20500", "no no yes"],
    ["punctuation and case differ", "Well,@19500 then@19900", "well@19520 Then.@19950 b@21000", "Well, then b"],
    ["nothing in the first", "", "a@20500", "a"],
    ["nothing in the second", "a@19000", "", "a"],
  ])("%s", (_, first, second, expected) => {
    expect(textOf(joined(words(first), words(second), 20_000))).toBe(expected);
  });

  test("no word is lost or doubled, wherever a speech is cut", () => {
    const speech = Array.from({ length: 60 }, (_, index) => `w${index}@${index * 400}`).join(" ");
    const all = words(speech);
    for (let cut = 4000; cut < 20_000; cut += 130) {
      const first = all.filter((word) => word.endMs <= cut + OVERLAP_MS);
      const second = all
        .filter((word) => word.startMs >= cut - OVERLAP_MS)
        .map((word) => ({ ...word, startMs: word.startMs + 120, endMs: word.endMs + 120 }));
      expect(textOf(joined(first, second, cut))).toBe(textOf(all));
    }
  });
});

describe("invented text", () => {
  const repeated = (phrase: string, times: number) =>
    words(Array.from({ length: times }, () => phrase).join(" ")).map((word, index) => ({
      ...word,
      startMs: index * 300,
    }));
  test.each([
    ["a loop over music", repeated("Thank you.", 14), 28_000, ""],
    ["thanks that fill a long part", words("Thanks for watching!"), 25_000, ""],
    ["thanks in a short part", words("Thank you."), 3000, "Thank you."],
    ["thanks after something else", words("That was all. Thank you."), 25_000, "That was all. Thank you."],
    [
      "a long phrase in a loop, of which one may be true",
      repeated("and we went to the sea", 5),
      28_000,
      "and we went to the sea",
    ],
    [
      "the end of a part in a loop",
      [...words("So it began"), ...repeated("in the end", 6)],
      28_000,
      "So it began in the end",
    ],
    ["an emphasis", words("no no no it was very very good"), 10_000, "no no no it was very very good"],
    [
      "a refrain that is sung twice",
      words("happy birthday to you happy birthday to you"),
      10_000,
      "happy birthday to you happy birthday to you",
    ],
    [
      "Japanese thanks",
      [{ text: "ご視聴ありがとうございました", startMs: 0, endMs: 29_000, isSpaced: false }],
      29_000,
      "",
    ],
    ["nothing", [], 29_000, ""],
  ])("%s", (_, given, durationMs, expected) => {
    expect(textOf(withoutInvented(given, durationMs))).toBe(expected);
  });

  test("words in complete silence are dropped, those at its edges stay", () => {
    const active = new Uint8Array(10_000 / HOP_MS).fill(1, 2000 / HOP_MS, 4000 / HOP_MS);
    expect(textOf(audibleWords(words("a@500 b@1700 c@3000 d@4200 e@6000 f@12000"), active))).toBe("b c d");
  });

  test("an utterance in a loop over several parts is passed on once", () => {
    const passed: string[] = [];
    const filter = new LoopFilter(({ text }) => void passed.push(text));
    let at = 0;
    const say = (text: string, pauseMs = 20_000) => {
      at += pauseMs;
      const said = words(text).map((word, index) => ({
        ...word,
        startMs: at + index * 200,
        endMs: at + index * 200 + 200,
      }));
      for (const utterance of utterancesOf(said)) filter.push(utterance);
    };
    for (const text of [
      "Good morning all.",
      ...Array(9).fill("See you next time."),
      "Yes.",
      "Yes.",
      "Yes.",
      "Yes.",
      "a b c",
      "a b c",
      "d",
    ])
      say(text);
    // An hour apart it is no loop.
    for (let hour = 0; hour < 4; hour++) say("It is noon.", 3_600_000);
    filter.flush();
    expect(passed).toEqual([
      "Good morning all.",
      "See you next time.",
      "Yes.",
      "Yes.",
      "Yes.",
      "Yes.",
      "a b c",
      "a b c",
      "d",
      ...Array(4).fill("It is noon."),
    ]);
  });
});

test("utterances end at pauses and at sentences, and not at abbreviations", () => {
  const given = words("Dr.@0 Who@210 came.@420 He@1000 said@1210 yes@1420 then@3000 left@3210");
  expect(utterancesOf(given).map(({ text, startMs, endMs }) => [text, startMs, endMs])).toEqual([
    ["Dr. Who came.", 0, 620],
    ["He said yes", 1000, 1620],
    ["then left", 3000, 3410],
  ]);
});

describe("activity and parts", () => {
  /** Levels in dBFS: `20s@-20` for 20 seconds. */
  const levels = (text: string) =>
    Int8Array.from(
      text.split(" ").flatMap((each) => {
        const [seconds = "", level = ""] = each.split("s@");
        return Array<number>((Number(seconds) * 1000) / HOP_MS).fill(Number(level));
      }),
    );
  const stretches = (text: string) => stretchesOf(activityOf(levels(text))).map((each) => [each.startMs, each.endMs]);

  test.each([
    ["digital silence", "60s@-96", []],
    ["noise of a recorder", "60s@-75", []],
    ["speech after silence", "4s@-96 5s@-20 4s@-96", [[3700, 9300]]],
    ["speech over noise", "10s@-55 5s@-40 10s@-55", [[9700, 15_300]]],
    ["a quiet recording", "10s@-79 5s@-64 10s@-79", [[9700, 15_300]]],
    ["loud music without a pause", "90s@-18", [[0, 90_000]]],
    ["a click", "10s@-96 0.05s@-10 10s@-96", []],
    ["nothing", "0s@0", []],
  ])("%s", (_, given, expected) => {
    expect(stretches(given)).toEqual(expected);
  });

  test.each([
    ["short speech", "5s@-20", [[0, 5000, 0, 5000]]],
    [
      "silence is left out",
      "5s@-20 60s@-96 5s@-20",
      [
        [0, 5300, 0, 5300],
        [64_700, 70_000, 64_700, 70_000],
      ],
    ],
    [
      "a cut in the longest pause",
      "21s@-20 1s@-96 2s@-20 2s@-96 10s@-20",
      [
        [0, 25_000, 0, 26_000],
        [25_000, 36_000, 24_000, 36_000],
      ],
    ],
    [
      "a cut where it is quietest",
      "24s@-18 0.4s@-25 12s@-18",
      [
        [0, 24_250, 0, 25_250],
        [24_250, 36_400, 23_250, 36_400],
      ],
    ],
  ])("%s", (_, given, expected) => {
    const hops = levels(given);
    const parts = partsOf(stretchesOf(activityOf(hops)), hops);
    expect(parts.map(({ startMs, endMs, fromMs, toMs }) => [startMs, endMs, fromMs, toMs])).toEqual(expected);
  });

  test("parts cover all activity without a gap and fit one window", () => {
    // A linear congruential generator: the same levels in each run.
    let seed = 7;
    const random = () => {
      seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
      return seed / 2 ** 31;
    };
    const hops = new Int8Array((3600 * 1000) / HOP_MS);
    for (let at = 0; at < hops.length; ) {
      const length = Math.ceil(((random() < 0.7 ? 6000 : 40_000) * random() ** 2) / HOP_MS);
      hops.fill(random() < 0.6 ? -22 : -96, at, at + length);
      at += length;
    }
    const found = stretchesOf(activityOf(hops));
    const parts = partsOf(found, hops);
    expect(parts.every((part) => part.toMs - part.fromMs <= 30_000 && part.endMs > part.startMs)).toBe(true);
    for (const { startMs, endMs } of found) {
      const covering = parts.filter((part) => part.endMs > startMs && part.startMs < endMs);
      expect(covering[0]?.startMs).toBeLessThanOrEqual(startMs);
      expect(covering.at(-1)?.endMs).toBeGreaterThanOrEqual(endMs);
      expect(covering.every((part, index) => index === 0 || part.startMs === covering[index - 1]?.endMs)).toBe(true);
    }
  });
});

import { describe, expect, test } from "vitest";
import { runToEnd } from "#src/lib/base/sliced.ts";
import {
  COLUMNS_PER_SECOND,
  CUE_MS,
  GAP_MS,
  LINE_COLUMNS,
  type ShapedCue,
  shapedCues,
} from "#src/lib/subtitles/cues/shape.ts";
import type { TimedText } from "#src/lib/subtitles/cues/timed-pieces.ts";
import { widthOf } from "#src/lib/subtitles/cues/width.ts";
import type { Random } from "#test/support/crash/random.ts";
import { seeded } from "#test/support/seed.ts";

const shaped = (...utterances: TimedText[]) => runToEnd(shapedCues(utterances));
const said = (text: string, startMs: number, endMs: number, words: [string, number, number][] = []): TimedText => ({
  text,
  startMs,
  endMs,
  words: words.map(([word, start, end]) => ({ text: word, startMs: start, endMs: end })),
});
const linesOf = (cues: ShapedCue[]) => cues.map(({ lines }) => lines);
const timesOf = (cues: ShapedCue[]) => cues.map(({ startMs, endMs }) => [startMs, endMs]);

describe("columns", () => {
  test.each([
    ["Grüße", 5],
    ["日本語", 6],
    ["ｗｉｄｅ", 8],
    ["한국어", 6],
    ["नमस्ते", 4],
    ["e\u0301", 1],
    ["\u202bمرحبا\u202c", 5],
    ["a👍", 3],
  ])("%s has %i", (text, width) => {
    expect(widthOf(text)).toBe(width);
  });
});

describe("breaks", () => {
  test.each<[string, string, number, string[][]]>([
    [
      "at the ends of sentences, and not at abbreviations",
      "Then Dr. Smith came in. He was late, as he always is. No one had expected anything else of him.",
      7000,
      [["Then Dr. Smith came in."], ["He was late, as he always is."], ["No one had expected anything else of him."]],
    ],
    [
      "of lines at phrases",
      "We wanted to go to the sea, but the train was late again today.",
      4000,
      [["We wanted to go to the sea,", "but the train was late again today."]],
    ],
    [
      "of cues before conjunctions, in German",
      "Wir sind gestern mit dem Fahrrad an den See gefahren und haben dort bis zum späten Abend in der Sonne gelegen",
      8000,
      [
        ["Wir sind gestern mit dem Fahrrad", "an den See gefahren"],
        ["und haben dort bis zum späten", "Abend in der Sonne gelegen"],
      ],
    ],
    [
      "between words of Japanese, without a mark at the start of a line",
      "今日は天気がとてもいいので、公園まで散歩に行きましょうと彼女は言いました。",
      6000,
      [["今日は天気がとてもいいので、公園まで", "散歩に行きましょうと彼女は言いました。"]],
    ],
    ["of what is longer than a line", "x".repeat(100), 6000, [["x".repeat(42), "x".repeat(42)], ["x".repeat(16)]]],
  ])("are %s", (_, text, ms, lines) => {
    expect(linesOf(shaped(said(text, 0, ms)))).toEqual(lines);
  });

  test("are at pauses", () => {
    const cues = shaped(
      said("one two three four", 0, 9000, [
        ["one", 0, 400],
        ["two", 400, 800],
        ["three", 4000, 4400],
        ["four", 4400, 4800],
      ]),
    );
    expect([linesOf(cues), timesOf(cues)]).toEqual([
      [["one two"], ["three four"]],
      [
        [0, 1000],
        [4000, 5000],
      ],
    ]);
  });
});

describe("times", () => {
  test("are those of words, whatever their case and punctuation, and of numbers that are written in another way", () => {
    const words: [string, number, number][] = [
      ["hello", 1130, 1400],
      ["there", 1400, 1800],
      ["twenty", 4000, 4300],
      ["years", 4300, 4700],
    ];
    const cues = shaped(said("Hello, there! 20 years.", 0, 9000, words));
    expect([linesOf(cues), timesOf(cues)]).toEqual([
      [["Hello, there!"], ["20 years."]],
      [
        [1130, 2130],
        [4000, 5000],
      ],
    ]);
  });

  test("are divided by letters without words", () => {
    const cues = shaped(said(`${"a".repeat(30)}. ${"B".repeat(30)}.`, 1000, 5000));
    expect(timesOf(cues)).toEqual([
      [1000, 3000 - GAP_MS],
      [3000, 5000],
    ]);
  });

  test("leave time to read where nothing follows, and never reach the next cue", () => {
    const short = said("This is said very quickly.", 0, 400);
    expect(timesOf(shaped(short))).toEqual([[0, 1300]]);
    expect(timesOf(shaped(short, said("Then somebody else begins to speak.", 1300, 4000)))).toEqual([
      [0, 1300 - GAP_MS],
      [1300, 4000],
    ]);
    expect(timesOf(shaped(said("No", 0, 20_000)))).toEqual([[0, CUE_MS.most]]);
  });

  test.each<[string, TimedText[]]>([
    ["none", []],
    ["of text without content", [said(" \n\u0000", 0, 1000)]],
  ])("are %s", (_, utterances) => {
    expect(shaped(...utterances)).toEqual([]);
  });

  test("that go back or are equal lose no text", () => {
    const cues = shaped(said("First.", 5000, 5000), said("Second one.", 1000, 900), said("Third.", 5000, 5000));
    expect(linesOf(cues).flat().join(" ")).toBe("First. Second one. Third.");
    for (const [index, { startMs, endMs }] of cues.entries()) {
      expect(endMs).toBeGreaterThan(startMs);
      expect(startMs).toBeGreaterThanOrEqual(cues[index - 1]?.endMs ?? 0);
    }
  });

  test("and texts of words alone are joined as their script is written", () => {
    const times = (texts: string[]) =>
      texts.map((text, at) => [text, at * 300, at * 300 + 250] as [string, number, number]);
    expect(linesOf(shaped(said("", 0, 0, times(["Good", "morning", "everybody."]))))).toEqual([
      ["Good morning everybody."],
    ]);
    expect(linesOf(shaped(said("", 0, 0, times(["今日", "は", "。"]))))).toEqual([["今日は。"]]);
    expect(linesOf(shaped(said("", 0, 0, times([" So", "-called", " it"]))))).toEqual([["So-called it"]]);
  });
});

/** As engines print it: sentences with and without punctuation, in scripts of five kinds. */
const TALKS: Record<string, string> = {
  en: "So, what I want to show you today is how we moved the whole archive. It took us about three months, and no one noticed! Well, almost no one... The first week was hard because the disks failed one after another and we had only 2.5 TB left. Why did it work? I think that the tests, which Mr. Young had written in 2019, saved us. okay so let us look at the numbers that we have collected since then",
  de: "Meine Damen und Herren, herzlich willkommen zur Vorlesung über Wahrscheinlichkeitsrechnung! Wir beginnen, wie z. B. auch im letzten Jahr, mit einem einfachen Würfel. Wenn man ihn sechshundertmal wirft, dann erwartet man etwa hundert Einsen, aber genau hundert sind es fast nie. Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft ist ein Wort.",
  ja: "皆さん、こんにちは。今日は東京の新しい図書館について話したいと思います。この建物は2015年に建てられましたが、中に入ったことがある人は少ないでしょう。「静かな場所」と呼ばれています！コーヒーも飲めますし、Wi-Fiも使えます",
  th: "สวัสดีครับ วันนี้เราจะมาพูดถึงเรื่องการทำอาหารไทยที่บ้านซึ่งเป็นเรื่องที่ง่ายมากและสนุก ก่อนอื่นต้องเตรียมวัตถุดิบให้พร้อม แล้วจึงเริ่มตั้งกระทะ",
  ar: "مرحبا بكم في هذا الفيديو، سنتحدث اليوم عن كيفية إعداد القهوة العربية. هل تعرفون لماذا؟ لأن الكثير منكم سأل عنها في الأسبوع الماضي، ولأنها لذيذة جدا!",
};

const PER_WORD = new Intl.Segmenter("und", { granularity: "word" });
/** The talk as an engine hears it: utterances of some words, pauses, some words without times or with other letters. */
function heard(talk: string, random: Random): TimedText[] {
  const utterances: TimedText[] = [];
  let now = Math.round(random.next() * 3000);
  const hasWords = random.next() < 0.7;
  let text = "";
  let words: [string, number, number][] = [];
  let from = now;
  const close = () => {
    if (text.trim() !== "") utterances.push(said(text, from, now, hasWords ? words : []));
    text = "";
    words = [];
    now += random.next() < 0.3 ? Math.round(random.next() * 4000) : 0;
    from = now;
  };
  for (const { segment, isWordLike } of PER_WORD.segment(talk)) {
    text += segment;
    if (!isWordLike) continue;
    const ms = Math.round(40 + random.next() * 90 * segment.length);
    const shown = random.next() < 0.05 ? `${segment}x` : random.next() < 0.1 ? segment.toUpperCase() : segment;
    if (random.next() < 0.95) words.push([random.next() < 0.5 ? ` ${shown}` : shown, now, now + ms]);
    now += ms + (random.next() < 0.1 ? Math.round(random.next() * 900) : 0);
    if (random.next() < 0.08) close();
  }
  close();
  return utterances;
}

const bare = (text: string) => text.replace(/\s+/gu, "");

describe.each(Object.entries(TALKS))("speech in %s", (_, talk) => {
  test("is in readable cues, every word once, in any division by an engine", () => {
    const random = seeded();
    for (let run = 0; run < 40; run++) {
      const utterances = heard(talk, random);
      const cues = shaped(...utterances);
      expect(bare(cues.flatMap(({ lines }) => lines).join(""))).toBe(bare(utterances.map(({ text }) => text).join("")));
      const starts = new Set(utterances.flatMap((one) => [one, ...one.words]).map(({ startMs }) => startMs));
      for (const [index, { startMs, endMs, lines }] of cues.entries()) {
        const freeMs = (cues[index + 1]?.startMs ?? Number.POSITIVE_INFINITY) - startMs;
        const about = `${run}: ${JSON.stringify(cues[index])}`;
        expect([1, 2], about).toContain(lines.length);
        for (const line of lines) expect(widthOf(line), about).toBeLessThanOrEqual(LINE_COLUMNS);
        expect(endMs - startMs, about).toBeLessThanOrEqual(CUE_MS.most);
        expect(endMs, about).toBeLessThanOrEqual(startMs + freeMs);
        const columns = widthOf(lines.join(" "));
        const readMs = Math.min(
          CUE_MS.most,
          freeMs - GAP_MS,
          Math.max(CUE_MS.least, (columns * 1000) / COLUMNS_PER_SECOND),
        );
        expect(endMs - startMs, about).toBeGreaterThanOrEqual(
          Math.floor(Math.max(readMs, 1) - 1000 / COLUMNS_PER_SECOND),
        );
        // Where the engine stated the times of words, the start of one of them, or between two of them.
        if (starts.has(startMs)) continue;
        expect(startMs).toBeGreaterThanOrEqual(Math.min(...starts));
      }
    }
  });
});

test("a day of words takes linear time, in short slices", () => {
  const talk = (count: number): TimedText[] => [
    said(
      Array.from({ length: count }, (_, at) => (at % 9 === 8 ? "word," : "word")).join(" "),
      ...[0, count * 300],
      Array.from({ length: count }, (_, at) => ["word", at * 300, at * 300 + 250] as [string, number, number]),
    ),
  ];
  const steps = (count: number) => {
    const work = shapedCues(talk(count));
    let total = 0;
    while (!work.next().done) total++;
    return total;
  };
  const one = steps(3000);
  const ten = steps(30_000);
  expect(ten).toBeGreaterThan(1000);
  expect(ten).toBeLessThan(one * 12);
});

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { PartMerger } from "#platform/outbound/transcribe/divided/merge.ts";
import { activityIn, dividedAt, partsOfAudio } from "#platform/outbound/transcribe/divided/plan.ts";
import type { Utterance } from "#platform/outbound/transcribe/speech.ts";
import { CaptionsTooLarge } from "#platform/outbound/transcribe/speech-text.ts";
import { headerOf } from "#platform/outbound/transcribe/wav.ts";
import { HOP_MS } from "#platform/outbound/transcribe/whisper/activity.ts";
import { emptyFolder } from "#test/support/folder.ts";

const OVERLAP_MS = 1000;

/** `Good,@1200 morning.@1500`: a stretch with the starts of its words, of 200 ms each; words have no punctuation. */
function utterance(text: string, { hasWords = true, confidence = null as number | null } = {}): Utterance {
  const words = text.split(" ").map((each) => {
    const [shown = "", start = "0"] = each.split("@");
    return { shown, startMs: Number(start), endMs: Number(start) + 200 };
  });
  return {
    text: words.map(({ shown }) => shown).join(" "),
    startMs: words[0]?.startMs ?? 0,
    endMs: words.at(-1)?.endMs ?? 0,
    confidence,
    words: hasWords
      ? words.map(({ shown, ...times }) => ({ text: shown.replace(/\p{P}/gu, ""), ...times, confidence: 0.9 }))
      : [],
  };
}
type Said = { startMs: number; endMs: number; utterances: Utterance[]; language?: string | null };
function merged(...parts: Said[]) {
  const merger = new PartMerger();
  for (const part of parts) merger.add({ language: null, ...part });
  return merger.end();
}
const textOf = ({ utterances }: { utterances: readonly Utterance[] }) => utterances.map(({ text }) => text).join(" | ");
/** Two parts that touch at 40 s. */
const joined = (first: Utterance[], second: Utterance[]) =>
  merged({ startMs: 0, endMs: 40_000, utterances: first }, { startMs: 40_000, endMs: 80_000, utterances: second });

describe("parts of speech that overlap around 40 s", () => {
  test.each<[string, string[], string[], string]>([
    ["a pause at the cut", ["One, two.@38000"], ["Three.@41500"], "One, two. | Three."],
    [
      "both heard the same words",
      ["It was@38500 good,@39400 really@40100"],
      ["good,@39420 really@40120 good.@40800"],
      "It was good, really | good.",
    ],
    [
      "a word that straddles the cut",
      ["We were@39000 television@39900"],
      ["television@39950 people.@40600"],
      "We were television | people.",
    ],
    [
      "a word that the end of the first divides",
      ["We were@39000 tele@40900"],
      ["television@40850 people.@41600"],
      "We were | television people.",
    ],
    [
      "a word that the start of the second divides",
      ["the television@38950 is@39700 on@40200"],
      ["vision@39020 is@39710 on@40210 now@40800"],
      "the television is on | now",
    ],
    [
      "the texts of the overlap differ",
      ["A sea@39600 floor@40300"],
      ["I see@39650 for@40320 all.@41200"],
      "A sea | for all.",
    ],
    ["a word that only the first heard, behind the cut", ["so@39000 oh@40500"], ["and@42500"], "so oh | and"],
    ["a word that only the second heard, before the cut", ["so@38000"], ["oh@39300 and@42500"], "so | oh and"],
    ["words that are said twice", ["no,@39000 no@39400"], ["No,@39000 no,@39400 yes@40500"], "no, no | yes"],
    ["the second heard nothing", ["so@39500 it ends@40600"], [], "so it ends"],
    ["the first heard nothing", [], ["it@39500 begins@40600"], "it begins"],
  ])("%s", (_, first, second, expected) => {
    // Words without a time of their own follow the one before.
    const timed = (text: string) => {
      let at = 0;
      return text
        .split(" ")
        .map((word) => {
          const [shown, start] = word.split("@");
          at = start === undefined ? at + 220 : Number(start);
          return { shown, start };
        })
        .map(({ shown, start }, index, all) => {
          const next = all.slice(index).findIndex((each) => each.start !== undefined);
          const known = start ?? Number(all[index + next]?.start ?? 0) - 220 * next;
          return `${shown}@${known}`;
        })
        .join(" ");
    };
    const found = joined(
      first.map((text) => utterance(timed(text))),
      second.map((text) => utterance(timed(text))),
    );
    expect(textOf(found)).toBe(expected);
  });

  const SPEECH = Array.from({ length: 200 }, (_, index) => ({ text: `w${index}`, startMs: index * 400 }));
  test.each([
    ["with times of words", true, 0],
    ["with times that differ between the parts", true, 120],
    ["without times of words", false, 0],
  ])("no word is lost or doubled, wherever a speech is cut: %s", (_, hasWords, shiftMs) => {
    for (let cutMs = 20_000; cutMs < 22_000; cutMs += 70) {
      const part = (fromMs: number, toMs: number, shift: number) => {
        const words = SPEECH.filter(({ startMs }) => startMs >= fromMs && startMs + 200 <= toMs);
        // A stretch of six words at a time, as an engine divides them, from where the part begins.
        return Array.from({ length: Math.ceil(words.length / 6) }, (_, at) =>
          utterance(
            words
              .slice(at * 6, at * 6 + 6)
              .map(({ text, startMs }) => `${text}@${startMs + shift}`)
              .join(" "),
            { hasWords },
          ),
        );
      };
      const { utterances } = merged(
        { startMs: 0, endMs: cutMs, utterances: part(0, cutMs + OVERLAP_MS, 0) },
        { startMs: cutMs, endMs: 80_000, utterances: part(cutMs - OVERLAP_MS, 80_000, shiftMs) },
      );
      expect(textOf({ utterances }).replaceAll(" |", "")).toBe(SPEECH.map(({ text }) => text).join(" "));
      const starts = utterances.map(({ startMs }) => startMs);
      expect(starts).toEqual(starts.toSorted((one, other) => one - other));
      if (hasWords) expect(utterances.flatMap(({ words }) => words)).toHaveLength(SPEECH.length);
    }
  });

  test("what is not near a cut is unchanged, with its confidence", () => {
    const far = utterance("Far@10000 away.@10300", { confidence: 0.7 });
    const near = utterance("Good,@39400 night.@40200", { confidence: 0.5 });
    const { utterances } = joined([far, near], [utterance("night,@40250 all@40700", { confidence: 0.3 })]);
    expect(utterances[0]).toBe(far);
    expect(utterances[1]).toBe(near);
    expect(utterances[2]).toMatchObject({ text: "all", confidence: 0.3, words: [{ text: "all", startMs: 40_700 }] });
  });

  test("numbers that the words write in another way keep what is said", () => {
    const price = { ...utterance("costs@39000 five@39500 euros@40500"), text: "costs €5" };
    expect(textOf(joined([price], [utterance("euros@40450 today@41200")]))).toBe("costs €5 | today");
  });

  test("an engine that repeats a word a thousand times takes no time", () => {
    const loud = (fromMs: number): Utterance => {
      const words = Array.from({ length: 5000 }, (_, index) => {
        const startMs = fromMs + index / 5;
        return { text: "a", startMs, endMs: startMs + 1, confidence: null };
      });
      const text = words.map((word) => word.text).join(" ");
      return { text, startMs: fromMs, endMs: fromMs + 1000, confidence: null, words };
    };
    const { utterances } = joined([loud(39_500)], [loud(39_500)]);
    expect(utterances.flatMap(({ words }) => words)).toHaveLength(5000);
  });

  test("a phrase that an engine repeats over several parts stays once", () => {
    const phrase = (startMs: number) => utterance(`Thanks@${startMs} for@${startMs + 300} watching!@${startMs + 600}`);
    const part = (startMs: number): Said => ({
      ...{ startMs, endMs: startMs + 20_000 },
      utterances: [phrase(startMs + 5000), phrase(startMs + 12_000)],
    });
    expect(textOf(merged(part(0), part(20_000), part(40_000)))).toBe("Thanks for watching!");
  });

  test("the language is that of most of the text", () => {
    const part = (startMs: number, language: string | null, text: string): Said => ({
      ...{ startMs, endMs: startMs + 40_000, language },
      utterances: text === "" ? [] : [utterance(`${text}@${startMs + 5000}`)],
    });
    expect(merged(part(0, "en", "Hi"), part(40_000, "de", "Donaudampfschiff"), part(80_000, "fr", "")).language).toBe(
      "de",
    );
    expect(merged(part(0, null, "Hi")).language).toBeNull();
  });
});

describe("dividing long audio", () => {
  const levels = new Int8Array((400 * 1000) / HOP_MS).fill(-20);
  /** `0-55 57-110`: seconds in which something is heard. */
  const stretches = (text: string) =>
    text.split(" ").map((each) => {
      const [from = 0, to = 0] = each.split("-").map(Number);
      return { startMs: from * 1000, endMs: to * 1000 };
    });
  const shown = (parts: readonly { startMs: number; endMs: number }[]) =>
    parts.map(({ startMs, endMs }) => `${startMs / 1000}-${endMs / 1000}`).join(" ");
  test.each([
    ["short audio is one part", "1-50", "1-50"],
    ["a cut is in the longest pause", "0-44 45-50 53-60 60.5-100", "0-50 53-100"],
    ["silence is in no part", "0-30 200-230", "0-30 200-230"],
    ["a pause that is longer than a part", "0-50 300-350", "0-50 300-350"],
    ["short words with long pauses share a part", "0-1 20-21 41-42 60-61", "0-21 41-61"],
  ])("%s", (_, heard, expected) => {
    expect(shown(dividedAt(stretches(heard), levels))).toBe(expected);
  });

  test("audio without a pause is cut where it is quietest, in parts of 40 to 58 s that touch", () => {
    const own = levels.slice().fill(-40, 45_000 / HOP_MS, 45_500 / HOP_MS);
    const parts = dividedAt(stretches("0-400"), own);
    expect(parts[0]?.endMs).toBeGreaterThanOrEqual(45_000);
    expect(parts[0]?.endMs).toBeLessThanOrEqual(45_500);
    for (const [index, { startMs, endMs }] of parts.entries()) {
      expect(startMs).toBe(parts[index - 1]?.endMs ?? 0);
      expect(endMs - startMs).toBeLessThanOrEqual(58_000);
      if (index + 1 < parts.length) expect(endMs - startMs).toBeGreaterThanOrEqual(40_000);
    }
  });

  test("silence has no parts, a word in it has one", async () => {
    const wavPath = join(emptyFolder(), "silence.wav");
    const samples = new Int16Array(130 * 16_000);
    const write = () => {
      const bytes = Buffer.from(samples.buffer);
      writeFileSync(wavPath, Buffer.concat([headerOf(bytes.length), bytes]));
    };
    write();
    expect(await partsOfAudio(wavPath)).toEqual([]);
    for (let at = 0; at < 8000; at++) samples[100 * 16_000 + at] = 9000 * Math.sin(at / 5);
    write();
    expect(await partsOfAudio(wavPath)).toEqual([{ startMs: 99_700, endMs: 100_800 }]);
    const isHeard = await activityIn(wavPath);
    expect([isHeard(100_100, 100_300), isHeard(99_000, 99_600), isHeard(50_000, 60_000)]).toEqual([true, true, false]);
  });
});

describe("repetitions", () => {
  const text = (startMs: number) => utterance(`see@${startMs} you@${startMs + 300} soon@${startMs + 600}`);
  const sung = (count: number, from: number) => Array.from({ length: count }, (_, index) => text(from + index * 5000));

  test("of a chorus within a part, or over two, all stay", () => {
    expect(joined(sung(4, 3000), []).utterances).toHaveLength(4);
    expect(joined(sung(3, 20_000), sung(3, 45_000)).utterances).toHaveLength(6);
  });

  test("over several parts are a loop, of which the first stays", () => {
    const parts = Array.from({ length: 5 }, (_, at) => ({
      startMs: at * 30_000,
      endMs: (at + 1) * 30_000,
      utterances: sung(2, at * 30_000 + 5000),
    }));
    expect(merged(...parts).utterances.map(({ startMs }) => startMs)).toEqual([5000]);
  });
});

test("text of more than captions may have ends the merger", () => {
  const merger = new PartMerger();
  const add = (at: number) => {
    const [startMs, endMs] = [at * 60_000, (at + 1) * 60_000];
    const said = { startMs: startMs + 2000, endMs: startMs + 3000, confidence: null, words: [] };
    merger.add({ startMs, endMs, language: null, utterances: [{ ...said, text: `${at} ${"a".repeat(200_000)}` }] });
  };
  for (let at = 0; at < 9; at++) add(at);
  expect(() => add(10)).toThrow(CaptionsTooLarge);
});

import { describe, expect, test } from "vitest";
import { runInSlices } from "#src/lib/base/time-slices.ts";
import { align } from "#src/lib/subtitles/align/align.ts";
import type { TimedText } from "#src/lib/subtitles/align/timing.ts";
import { wordsOf } from "#src/lib/subtitles/align/words.ts";
import { lineOf, randomFrom, talk } from "#test/support/lib/random-dialogue.ts";
import { fc } from "#test/support/property.ts";

const aligned = (track: readonly TimedText[], reference: readonly TimedText[]) => runInSlices(align(track, reference));
const cue = (seconds: number, text: string, length = 2): TimedText => ({
  startMs: seconds * 1000,
  endMs: (seconds + length) * 1000,
  text,
});

test.each([
  ["Hello, <i>World</i>!", "hello world"],
  ["{\\an8}HELLO\nworld…", "hello world"],
  ["<v Fred>It’s</v> <c.yellow>me</c> <00:00:01.000>now", "its me now"],
  ["[GLASS BREAKS] (sighs) ♪", ""],
  ["Tom &amp; Jerry &lt;3 &#233;t&#xE9;", "tom jerry 3 été"],
  ["STRASSE straße Straße", "strasse strasse strasse"],
  ["ﬁne ①  e\u0301te\u0301", "fine 1 été"],
  ["- Don't!\n- I won´t", "dont i wont"],
  ["日本語 です", "日 本 語 で す"],
  ["ภาษา", "ภ า ษ า"],
  ["ΛΌΓΟΣ λόγος", "λόγοσ λόγοσ"],
  ["🎵 –?!", ""],
])("%j is compared as %j", (text, words) => {
  expect(wordsOf(text)).toEqual(words.split(" ").filter(Boolean));
});

describe("a few lines", () => {
  const lines = ["Where have you been?", "At the harbour.", "Yes.", "All night long?", "Until it rained."];
  const reference = lines.map((text, k) => cue(10 + 4 * k, text));

  test("move by the median offset", async () => {
    const track = reference.map(({ text }, k) => cue(7 + 4 * k + (k === 1 ? 0.2 : 0), text));
    expect(await aligned(track, reference)).toEqual({
      matchRatio: 1,
      anchorCount: 5,
      moved: {
        strategy: "global_offset",
        minOffsetMs: 3000,
        maxOffsetMs: 3000,
        timings: track.map(({ startMs, endMs }) => ({ startMs: startMs + 3000, endMs: endMs + 3000 })),
      },
    });
  });

  test("are clamped at zero, and keep an end after their start", async () => {
    const track = reference.map(({ startMs, endMs, text }) => ({ startMs: startMs + 5000, endMs: endMs + 5000, text }));
    const { moved } = await aligned([cue(0, "Before"), cue(4, "it all"), ...track], reference);
    expect(moved?.timings.slice(0, 3)).toEqual([
      { startMs: 0, endMs: 1 },
      { startMs: 0, endMs: 1000 },
      { startMs: 10_000, endMs: 12_000 },
    ]);
  });

  test.each([
    ["nothing in common", ["Completely different.", "Nothing here"], 0, 0],
    ["a single line in common", ["At the harbour.", "Nothing"], 1, 0.5],
    ["no words at all", ["♪", "[MUSIC]"], 0, 0],
    ["no cue", [], 0, 0],
  ])("with %s are not moved", async (_, texts, anchorCount, matchRatio) => {
    const track = texts.map((text, k) => cue(4 * k, text));
    expect(await aligned(track, reference)).toEqual({ matchRatio, anchorCount, moved: null });
    if (texts.length === 0) expect((await aligned(reference, track)).moved).toBeNull();
  });

  test("of 11, two matched ones are too few", async () => {
    const others = Array.from({ length: 9 }, (_, k) => cue(30 + k, `other${k} unlike${k}`));
    const track = [...reference.slice(0, 2), ...others];
    expect(await aligned(track, reference)).toMatchObject({ matchRatio: 2 / 11, anchorCount: 2, moved: null });
  });
});

describe("a film", () => {
  const reference = talk({ cues: 200, seed: 1 });

  test("of another frame rate is followed to its ends, where nothing matches", async () => {
    const rate = 23.976 / 25;
    const track = reference.map(({ startMs, endMs, text }, k) => ({
      startMs: Math.round(startMs * rate + 2000),
      endMs: Math.round(endMs * rate + 2000),
      text: k < 60 || k > 140 ? `unheard${k} of${k}` : text,
    }));
    const { moved, anchorCount } = await aligned(track, reference);
    expect(moved?.strategy).toBe("piecewise");
    expect(anchorCount).toBe(81);
    for (const [k, { startMs, endMs }] of reference.entries()) {
      expect(Math.abs((moved?.timings[k]?.startMs as number) - startMs), `start of ${k}`).toBeLessThan(300);
      expect(Math.abs((moved?.timings[k]?.endMs as number) - endMs), `end of ${k}`).toBeLessThan(300);
    }
  });

  test.each([90_000, -20_000])(
    "with a jump of %d ms is followed, and the lines around it keep their duration",
    async (jump) => {
      const there = reference.map((own, k) => {
        const move = 60_000 + (k < 100 ? 0 : jump);
        return { ...own, startMs: own.startMs + move, endMs: own.endMs + move };
      });
      const isNear = (k: number) => k > 90 && k < 110;
      const track = reference.map((own, k) => (isNear(k) ? { ...own, text: `[NOISE] unheard${k}` } : own));
      const { moved } = await aligned(track, jump > 0 ? there : there.filter((_, k) => !isNear(k)));
      const timings = moved?.timings ?? [];
      expect(timings.map(({ startMs, endMs }) => endMs - startMs)).toEqual(
        track.map(({ startMs, endMs }) => endMs - startMs),
      );
      expect(timings.map(({ startMs }) => startMs).filter((_, k) => !isNear(k))).toEqual(
        there.map(({ startMs }) => startMs).filter((_, k) => !isNear(k)),
      );
      const moves = [60_000, 60_000 + jump].sort((a, b) => a - b);
      expect([moved?.minOffsetMs, moved?.maxOffsetMs]).toEqual(moves);
      for (const [k, { startMs }] of timings.entries()) {
        expect(startMs).toBeGreaterThanOrEqual(timings[k - 1]?.startMs ?? 0);
        if (jump > 0) expect(moves).toContain(startMs - (track[k] as TimedText).startMs);
      }
    },
  );

  test("with one line repeated is not misled by it", async () => {
    const texts = reference.map(({ text }, k) => (k % 3 === 0 ? text : "Yes."));
    const there = reference.map((own, k) => ({ ...own, text: texts[k] as string }));
    // Every seventh is missing, which leaves different numbers of the same line between the others.
    const track = there
      .filter((_, k) => k % 7 !== 5)
      .map((own) => ({ ...own, startMs: own.startMs + 2500, endMs: own.endMs + 2500 }));
    const { moved } = await aligned(track, there);
    const missed = track.filter(
      ({ startMs }, k) => Math.abs((moved?.timings[k]?.startMs ?? 0) - (startMs - 2500)) > 20,
    );
    expect(missed).toEqual([]);
  });

  test("with a line of one repeated word after a break, between missing lines, is followed", async () => {
    const there = reference.map((own, k) => {
      const move = k < 99 ? 0 : 30_000;
      const text = k === 100 ? "No no no!" : own.text;
      return { startMs: own.startMs + move, endMs: own.endMs + move, text };
    });
    const isMissing = (k: number) => k === 99 || (k > 100 && k < 104);
    const track = reference.map((own, k) => ({ ...own, text: k === 100 ? "NO, NO, NO" : own.text }));
    const { moved } = await aligned(
      track.filter((_, k) => !isMissing(k)),
      there,
    );
    expect(moved?.timings).toEqual(
      there.filter((_, k) => !isMissing(k)).map(({ startMs, endMs }) => ({ startMs, endMs })),
    );
  });

  test.each([
    ["first", "so we", (word: string, rest: string) => `${word} ${rest}`],
    ["last", "that is", (word: string, rest: string) => `${rest} ${word}`],
  ])(
    "with a missing line that shares its %s word with its neighbor keeps the neighbor in place",
    async (edge, other, join) => {
      const breakMs = 120_000;
      const line = edge === "first" ? 100 : 99;
      const there = reference.flatMap((own, k) => {
        const moved = {
          ...own,
          startMs: own.startMs + (k < 100 ? 0 : breakMs),
          endMs: own.endMs + (k < 100 ? 0 : breakMs),
        };
        if (k !== line) return [moved];
        const kept = { ...moved, text: join("well", "unique words") };
        const text = join("well", other);
        // On the near side of the break, but the track has no such line.
        const before = { text, startMs: moved.startMs - 4000, endMs: moved.startMs - 2000 };
        const after = { text, startMs: moved.endMs + 2000, endMs: moved.endMs + 4000 };
        return edge === "first" ? [before, kept] : [kept, after];
      });
      const track = reference.map((own, k) => (k === line ? { ...own, text: join("well", "unique words") } : own));
      const { moved, matchRatio } = await aligned(track, there);
      expect(matchRatio).toBe(1);
      const wanted = (reference[line] as TimedText).startMs + (line < 100 ? 0 : breakMs);
      expect(moved?.timings[line]?.startMs).toBe(wanted);
    },
  );

  test("with reordered lines moves by those that kept their order", async () => {
    const track = reference.map((own) => ({ ...own, startMs: own.startMs + 800, endMs: own.endMs + 800 }));
    for (const k of [20, 60, 61, 150]) {
      const one = track[k] as TimedText;
      const two = track[k + 5] as TimedText;
      track[k] = { ...one, text: two.text };
      track[k + 5] = { ...two, text: one.text };
    }
    const { moved, matchRatio } = await aligned(track, reference);
    expect(matchRatio).toBeGreaterThan(0.95);
    expect(moved?.timings).toEqual(reference.map(({ startMs, endMs }) => ({ startMs, endMs })));
  });
});

test("a known warp is recovered, whatever was changed in texts and cues", async () => {
  const plan = fc.record({
    seed: fc.integer(),
    cues: fc.integer({ min: 40, max: 160 }),
    offsetMs: fc.integer({ min: -400, max: 60_000 }),
    rate: fc.constantFrom(1, 25 / 23.976, 23.976 / 25, 1.001),
    jumpAt: fc.double({ min: 0.25, max: 0.75, noNaN: true }),
    jumpMs: fc.constantFrom(0, 30_000, 120_000),
  });
  await fc.assert(
    fc.asyncProperty(plan, async ({ seed, cues, offsetMs, rate, jumpAt, jumpMs }) => {
      const random = randomFrom(seed);
      const spoken = talk({ cues, seed });
      const jumpTime = (spoken[Math.floor(jumpAt * cues)] as TimedText).startMs;
      const warped = (ms: number) => Math.round(ms * rate + offsetMs + 500 + (ms >= jumpTime ? jumpMs : 0));
      const reference = spoken.map(({ startMs, endMs, text }) => ({
        startMs: warped(startMs),
        // A line ends before the break that comes after it.
        endMs: warped(startMs) + Math.round((endMs - startMs) * rate),
        text,
      }));
      const track: (TimedText & { wanted: { startMs: number; endMs: number } | null })[] = [];
      for (let k = 0; k < cues; k++) {
        const own = spoken[k] as TimedText;
        const there = reference[k] as TimedText;
        const fate = random();
        if (fate < 0.06) continue;
        if (fate < 0.11) track.push({ ...own, text: lineOf(random, "stray"), wanted: null });
        else if (fate < 0.16 && k + 1 < cues && there.endMs + 5000 > (reference[k + 1] as TimedText).startMs) {
          const next = spoken[++k] as TimedText;
          const wanted = { startMs: there.startMs, endMs: (reference[k] as TimedText).endMs };
          track.push({ startMs: own.startMs, endMs: next.endMs, text: `${own.text}\n${next.text}`, wanted });
        } else if (fate < 0.21) {
          const words = own.text.split(" ");
          const middle = Math.round((own.startMs + own.endMs) / 2);
          const half = words.length >> 1;
          track.push({ ...own, endMs: middle, text: words.slice(0, half).join(" "), wanted: null });
          track.push({ ...own, startMs: middle, text: words.slice(half).join(" "), wanted: null });
        } else {
          const noisy =
            fate < 0.6 ? own.text.toUpperCase().replaceAll(" ", fate < 0.4 ? "\n" : ", ") : `<i>${own.text}</i>…`;
          track.push({ ...own, text: noisy, wanted: there });
        }
      }
      const { moved, matchRatio } = await aligned(track, reference);
      expect(moved?.strategy).toBe("piecewise");
      // Every cue whose whole text the reference has. Of half a cue and of a stray line nothing is promised.
      const promised = track.filter(({ wanted }) => wanted !== null).length;
      expect(matchRatio).toBeGreaterThanOrEqual(promised / track.length);
      let latest = 0;
      for (const [k, { wanted, text }] of track.entries()) {
        const found = moved?.timings[k] as { startMs: number; endMs: number };
        expect(found.startMs).toBeGreaterThanOrEqual(latest);
        expect(found.endMs).toBeGreaterThan(found.startMs);
        latest = found.startMs;
        if (!wanted) continue;
        expect(Math.abs(found.startMs - wanted.startMs), `start of ${k}: ${text}`).toBeLessThanOrEqual(20);
        expect(Math.abs(found.endMs - wanted.endMs), `end of ${k}: ${text}`).toBeLessThanOrEqual(20);
      }
    }),
    { numRuns: 100 },
  );
});

test("whatever the times and texts, every cue keeps its position and has a start before its end", async () => {
  const cues = fc.array(
    fc.record({
      startMs: fc.integer({ min: 0, max: 20_000 }),
      length: fc.integer({ min: 1, max: 9000 }),
      text: fc.constantFrom(
        "Yes.",
        "No.",
        "Well, yes",
        "one two three",
        "four five",
        "six",
        "[x]",
        "seven eight nine ten",
      ),
    }),
    { maxLength: 40 },
  );
  const timed = (list: { startMs: number; length: number; text: string }[]) =>
    list
      .map(({ startMs, length, text }) => ({ startMs, endMs: startMs + length, text }))
      .sort((a, b) => a.startMs - b.startMs);
  await fc.assert(
    fc.asyncProperty(cues, cues, async (a, b) => {
      const { moved, matchRatio } = await aligned(timed(a), timed(b));
      expect(matchRatio).toBeLessThanOrEqual(1);
      let latest = 0;
      for (const { startMs, endMs } of moved?.timings ?? []) {
        expect(Number.isInteger(startMs) && Number.isInteger(endMs)).toBe(true);
        expect(startMs).toBeGreaterThanOrEqual(latest);
        expect(endMs).toBeGreaterThan(startMs);
        latest = startMs;
      }
      expect(moved?.timings.length ?? a.length).toBe(a.length);
    }),
    { numRuns: 500 },
  );
});

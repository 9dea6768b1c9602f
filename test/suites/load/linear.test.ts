import { describe, expect, test } from "vitest";
import { PARSERS, type ParserName } from "#platform/parsing/parsers.ts";
import { DOCUMENT_LIMITS, TooComplex } from "#src/lib/base/document-limits.ts";
import { amount, everyNth } from "#test/support/amount.ts";
import { HOSTILE } from "./hostile-documents.ts";

/** The full tier tries half of what the limits allow, in half of the time. */
const SHARE = amount(2, 1);
const SIZE = DOCUMENT_LIMITS.documentBytes / SHARE;
/** A parser thread is ended after this time: no document within the limits may need it, on a slow machine either. */
const SLOW_MS = DOCUMENT_LIMITS.parseMs / SHARE;
/** Below that the growth of times is noise. */
const QUICK_MS = 150;
/** What takes so little for a document of one of these shares of the size is quick in full as well, even in quadratic time. */
const SAMPLES = [1 / 8, 1 / 4];
/** For documents twice as long. Linear is 2, quadratic 4; memory and noise add to it. */
const MAX_GROWTH = 2.8;
const NOISE_MS = 30;
/** The full tier gives each parser one of so many documents, another parser others of the same kind. */
const STEP = 24;

/** Processor time of this thread, which is independent of other programs. */
function cpuMs(work: () => unknown): number {
  const from = process.threadCpuUsage();
  try {
    work();
  } catch (error) {
    if (!(error instanceof TooComplex)) throw error;
  }
  const { user, system } = process.threadCpuUsage(from);
  return (user + system) / 1000;
}

/** A garbage collection can double one measurement; quadratic time is visible in each. */
const MEASUREMENTS = 3;

/** Why `work` is too slow for a size and twice that, or null. */
function slowness(work: (size: number) => () => unknown): string | null {
  let found: string | null = null;
  for (let n = 0; n < MEASUREMENTS; n++) {
    found = slownessOnce(work);
    if (found === null) return null;
  }
  return found;
}

function slownessOnce(work: (size: number) => () => unknown): string | null {
  for (const share of SAMPLES) if (cpuMs(work(SIZE * share)) < QUICK_MS * share ** 2) return null;
  const whole = cpuMs(work(SIZE));
  if (whole < QUICK_MS) return null;
  // Smaller documents show the growth in a fraction of the time.
  const quarter = work(SIZE / 4);
  const half = work(SIZE / 2);
  const one = Math.min(...[1, 2, 3].map(() => cpuMs(quarter)));
  let two = Number.POSITIVE_INFINITY;
  for (let n = 0; n < 3; n++) {
    two = Math.min(two, cpuMs(half));
    if (whole <= SLOW_MS && two <= NOISE_MS + MAX_GROWTH * one) return null;
  }
  return `${Math.round(one)} ms, twice as long ${Math.round(two)} ms, four times ${Math.round(whole)} ms`;
}

describe("a hostile document takes linear time", () => {
  test("and every parser has some", () => {
    expect(Object.keys(HOSTILE).sort()).toEqual(Object.keys(PARSERS).sort());
  });

  test("and quadratic time is detected", () => {
    // Searches in native code: how far the compiler has come with a loop does not change their duration.
    const quadratic = (size: number) => {
      const bytes = Buffer.alloc(size);
      return () => {
        for (let end = 0; end < size; end += 8) bytes.subarray(0, end).indexOf(1);
      };
    };
    expect(slowness(quadratic)).not.toBeNull();
    expect(slowness((size) => () => ",".repeat(size).split(","))).toBeNull();
  });

  const names = Object.keys(HOSTILE) as ParserName[];
  for (const [index, name] of names.entries()) {
    test(name, () => {
      const { texts, input } = HOSTILE[name];
      const parse = PARSERS[name] as (given: unknown) => unknown;
      const slow: string[] = [];
      for (const [about, text] of everyNth(texts, STEP, index % Math.min(STEP, texts.length))) {
        const found = slowness((size) => {
          const document = input(text(size));
          return () => parse(document);
        });
        if (found) slow.push(`${about}: ${found}`);
      }
      expect(slow).toEqual([]);
    });
  }
});

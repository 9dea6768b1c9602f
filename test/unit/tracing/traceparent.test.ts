import { describe, expect, test } from "vitest";
import { activeTraceparent, bound, continueTrace, formatTraceparent, parseTraceparent } from "#lib/tracing";

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN = "00f067aa0ba902b7";
const own = (flags = "01") => `00-${TRACE}-${SPAN}-${flags}`;

describe("a traceparent", () => {
  test.each([
    [own("01"), true],
    [own("00"), false],
    // Flags that are not defined yet say nothing.
    [own("fe"), false],
    [own("ff"), true],
    // A later version may have more fields.
    [`01-${TRACE}-${SPAN}-01-what-comes`, true],
  ])("%s is read", (header, isSampled) => {
    expect(parseTraceparent(header)).toEqual({ traceId: TRACE, spanId: SPAN, isSampled });
  });

  test.each([
    null,
    "",
    `ff-${TRACE}-${SPAN}-01`,
    `${own()}-more`,
    `01-${TRACE}-${SPAN}-01.more`,
    own().toUpperCase(),
    `00-${"0".repeat(32)}-${SPAN}-01`,
    `00-${TRACE}-${"0".repeat(16)}-01`,
    `00-${TRACE}-${SPAN}`,
    ` ${own()}`,
    `01-${TRACE}-${SPAN}-01-${"x".repeat(1000)}`,
  ])("%j is ignored", (header) => {
    expect(parseTraceparent(header)).toBeNull();
  });

  test("is written as it is read", () => {
    for (const header of [own("00"), own("01")]) {
      const read = parseTraceparent(header);
      expect(read && formatTraceparent(read)).toBe(header);
    }
  });
});

test("work belongs to the trace in which it was queued, and not to one that has ended", async () => {
  const seen: Record<string, string | null> = {};
  const note = (name: string) => () => {
    seen[name] = activeTraceparent();
  };
  const outside = bound(note("queued outside"));
  let late: (() => void) | undefined;
  await continueTrace(own(), async () => {
    const inside = bound(note("queued inside"));
    late = bound(note("after its end"));
    await continueTrace(own("00"), async () => {
      inside();
      outside();
    });
    note("running")();
  });
  late?.();
  note("outside")();
  expect(seen).toEqual({
    "queued inside": own(),
    "queued outside": null,
    running: own(),
    "after its end": null,
    outside: null,
  });
});

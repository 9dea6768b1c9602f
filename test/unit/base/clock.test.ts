import { expect, test } from "vitest";
import { iso } from "#src/lib/base/clock.ts";
import { fc } from "#test/support/property.ts";

const SLOTS = 1024;

test("a time is formatted as Date does it, whichever times were formatted before", () => {
  const time = fc.integer({ min: -8.64e15, max: 8.64e15 });
  const slots = fc.constantFrom(0, SLOTS, -SLOTS, 3 * SLOTS, 0.5);
  fc.assert(
    fc.property(fc.array(fc.tuple(time, slots), { maxLength: 20 }), (pairs) => {
      for (const [ms, more] of pairs)
        for (const at of [ms, ms + more, ms])
          if (Math.abs(at) <= 8.64e15) expect(iso(at)).toBe(new Date(at).toISOString());
    }),
    { numRuns: 500 },
  );
  expect(iso(null)).toBeNull();
  expect(() => iso(Number.NaN)).toThrow(RangeError);
});

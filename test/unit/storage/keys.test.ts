import { expect, test } from "vitest";
import { compareKeys } from "#storage/objects/keys.ts";
import { fc } from "#test/support/property.ts";

test("keys are ordered by their UTF-8 bytes", () => {
  const key = fc.string({
    unit: fc.constantFrom("a", "b", "/", "\u007f", "é", "\ud7ff", "\ue000", "\uffff", "😀", "𐀀"),
  });
  fc.assert(
    fc.property(key, key, (a, b) => {
      expect(Math.sign(compareKeys(a, b))).toBe(Buffer.compare(Buffer.from(a), Buffer.from(b)));
    }),
    { numRuns: 2000 },
  );
});

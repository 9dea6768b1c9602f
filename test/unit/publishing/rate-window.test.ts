import { expect, test } from "vitest";
import { RateWindow } from "#src/lib/publishing/rate-window.ts";
import { Random } from "#test/support/crash/random.ts";

test("the sum is that of the last seconds, whatever the pauses", () => {
  const random = new Random(5);
  for (const seconds of [1, 2, 10]) {
    let now = random.whole(0, 1_000_000);
    const window = new RateWindow(seconds, now);
    const added: { second: number; amount: number }[] = [];
    for (let count = 0; count < 2000; count++) {
      now += random.chance(0.05) ? random.whole(0, 30_000) : random.whole(0, 400);
      const second = Math.floor(now / 1000);
      const amount = random.whole(0, 1000);
      added.push({ second, amount });
      const expected = added
        .filter((each) => each.second > second - seconds)
        .reduce((sum, each) => sum + each.amount, 0);
      expect(window.add(amount, now)).toBe(expected);
    }
  }
});

import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { beforeExpiry } from "#web/client/parts/token-clock.ts";

beforeEach(() => void vi.useFakeTimers({ now: 0 }));
afterEach(() => void vi.useRealTimers());

const DAY_MS = 86_400_000;
const tokenUntil = (seconds: number) => `e30.${Buffer.from(JSON.stringify({ exp: seconds })).toString("base64url")}.x`;

test.each([
  ["of a day", 1],
  ["of 90 days, which is longer than any timer", 90],
])("a warning of a token %s comes a minute before its end", (_, days) => {
  const warn = vi.fn();
  beforeExpiry(tokenUntil(days * 86_400), warn);
  vi.advanceTimersByTime(days * DAY_MS - 61_000);
  expect(warn).not.toHaveBeenCalled();
  vi.advanceTimersByTime(1000);
  expect(warn.mock.calls).toEqual([[new Date(days * DAY_MS)]]);
});

test("it can be canceled while it waits for longer than a timer", () => {
  const warn = vi.fn();
  const cancel = beforeExpiry(tokenUntil(90 * 86_400), warn);
  vi.advanceTimersByTime(60 * DAY_MS);
  cancel();
  vi.advanceTimersByTime(90 * DAY_MS);
  expect(warn).not.toHaveBeenCalled();
});

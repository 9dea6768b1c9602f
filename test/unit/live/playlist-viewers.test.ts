import { expect, test } from "vitest";
import { ViewerCount } from "#live/playlists/viewer-count.ts";

test("viewers are sessions with a request in the last 30 s", () => {
  const viewers = new ViewerCount();
  expect(viewers.count(0)).toBe(0);
  viewers.see("one", 1000);
  viewers.see("two", 11_000);
  viewers.see("one", 21_000);
  expect(viewers.count(21_000)).toBe(2);
  expect(viewers.count(40_999)).toBe(2);
  expect(viewers.count(41_000)).toBe(1);
  expect(viewers.count(50_999)).toBe(1);
  expect(viewers.count(51_000)).toBe(0);
  viewers.see("two", 60_000);
  expect(viewers.count(60_000)).toBe(1);
});

test("sessions beyond the limit are not counted until others leave", () => {
  const viewers = new ViewerCount();
  for (let session = 0; session < 100_500; session++) viewers.see(`session ${session}`, 1000);
  expect(viewers.count(1000)).toBe(100_000);
  viewers.see("session 0", 20_000);
  viewers.see("late", 20_000);
  expect(viewers.count(31_000)).toBe(1);
  viewers.see("late", 31_000);
  expect(viewers.count(31_000)).toBe(2);
});

test("a session is any string", () => {
  const viewers = new ViewerCount();
  for (const session of ["", "__proto__", "\0", "é", "\ud800", "x".repeat(1_000_000)]) viewers.see(session, 0);
  expect(viewers.count(0)).toBe(6);
});

test("a clock that is set back or forward does not keep viewers", () => {
  const viewers = new ViewerCount();
  const HOUR = 3_600_000;
  viewers.see("one", 9 * HOUR);
  viewers.see("two", 9 * HOUR);
  viewers.see("one", HOUR);
  expect(viewers.count(HOUR)).toBe(2);
  viewers.see("one", HOUR + 20_000);
  expect(viewers.count(HOUR + 40_000)).toBe(1);
  viewers.see("two", 9 * HOUR);
  expect(viewers.count(9 * HOUR)).toBe(1);
});

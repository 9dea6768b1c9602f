import { expect, test } from "vitest";
import { HandshakeRate } from "#src/lib/srt/handshake-rate.ts";

const LIMITS = {
  inductionsPerSecond: 10,
  handshakesPerAddress: 120,
  moreHandshakesPerSecond: 20,
  handshakesPerSecond: 400,
};
const at = (address: string, port: number) => ({ address, port });

/** Fifty callers at one address send a handshake each, twenty times a second, for `seconds`. Returns how many are allowed. */
function flood(rate: HandshakeRate, from: number, seconds: number): number {
  let allowed = 0;
  for (let ms = from; ms < from + seconds * 1000; ms += 50)
    for (let port = 1; port <= 50; port++) if (rate.allowsConclusion(at("192.0.2.1", port), ms)) allowed++;
  return allowed;
}

test("a flood from one address is limited to what the address has in a minute, and then in a second", () => {
  const rate = new HandshakeRate(LIMITS);
  expect(flood(rate, 0, 30)).toBeLessThanOrEqual(120 + 30 * 20);
  expect(flood(rate, 30_000, 30)).toBeLessThanOrEqual(30 * 20);
});

test.each([0, 50, 500, 950])(
  "a caller at the address of a flood is allowed at once, %d ms after a second began",
  (ms) => {
    const rate = new HandshakeRate(LIMITS);
    flood(rate, 0, 20);
    flood(rate, 20_000, ms / 1000);
    expect(rate.allowsConclusion(at("192.0.2.1", 1000), 20_000 + ms)).toBe(true);
  },
);

test("new callers without end are limited too, and leave other addresses their places", () => {
  const rate = new HandshakeRate(LIMITS);
  let allowed = 0;
  for (let n = 0; n < 60_000; n++) if (rate.allowsConclusion(at("192.0.2.1", n), n)) allowed++;
  expect(allowed).toBeLessThanOrEqual(120 + 60 * 40);
  expect(rate.allowsConclusion(at("198.51.100.1", 1), 60_000)).toBe(true);
});

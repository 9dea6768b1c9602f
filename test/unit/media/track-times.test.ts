import { expect, test } from "vitest";
import { TrackTimes } from "#media/timeline/track-times.ts";

const FRAME = 1024;
const IN_PES = 16;

/**
 * Packets as ffprobe reads them from a transport stream: the container states the time of every sixteenth one, and the others
 * follow by the first rate.
 */
function read(rates: readonly [rate: number, packets: number][]): { end: number; last: number } {
  const track = new TrackTimes(false);
  const stated = FRAME / (rates[0]?.[0] as number);
  let [time, computed, count] = [10, 10, 0];
  for (const [rate, packets] of rates)
    for (let index = 0; index < packets; index++, count++) {
      computed = count % IN_PES === 0 ? time : computed + stated;
      track.add(computed, stated);
      time += FRAME / rate;
    }
  return { end: track.end ?? 0, last: time };
}

test.each<[string, [number, number][]]>([
  ["one rate", [[44_100, 500]]],
  [
    "a higher one",
    [
      [32_000, 203],
      [44_100, 205],
    ],
  ],
  [
    "a much higher one",
    [
      [16_000, 100],
      [48_000, 331],
    ],
  ],
  [
    "a lower one",
    [
      [48_000, 200],
      [32_000, 160],
    ],
  ],
  [
    "the first one again",
    [
      [32_000, 160],
      [48_000, 165],
      [32_000, 203],
    ],
  ],
  [
    "few packets of a higher one",
    [
      [32_000, 160],
      [44_100, 20],
    ],
  ],
])("audio in a transport stream with %s ends when it does", (_, rates) => {
  const { end, last } = read(rates);
  // What follows the last stated time is not known better than this.
  expect(Math.abs(end - last)).toBeLessThan((IN_PES * FRAME) / 48_000 / 2);
});

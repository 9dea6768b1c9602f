import { describe, expect, test } from "vitest";
import { PacketLines } from "#media/timeline/packet-lines.ts";
import { TrackTimes } from "#media/timeline/track-times.ts";

/** A packet per second of track 0 (video) and track 1 (audio), in the order of a file. */
const both = (...times: number[]) =>
  times.flatMap((seconds) => [`0,${seconds},${seconds},1`, `1,${seconds},${seconds},1`]);
const only = (index: number, ...times: number[]) => times.map((seconds) => `${index},${seconds},${seconds},1`);
const count = (from: number, to: number) => Array.from({ length: to - from }, (_, at) => from + at);

type Row = {
  name: string;
  lines: string[];
  /** How often, and when first, times jump; null: they do not. */
  jumps: [number, number] | null;
  end: number;
  isDiscontinuous?: boolean;
};

const ROWS: Row[] = [
  { name: "no jump", lines: both(...count(0, 9)), jumps: null, end: 9 },
  { name: "times restart", lines: both(...count(0, 5), ...count(0, 5)), jumps: [1, 5], end: 10 },
  { name: "they restart twice", lines: both(...count(0, 5), ...count(0, 5), ...count(0, 5)), jumps: [2, 5], end: 15 },
  {
    name: "they go back by less than what was stored",
    lines: both(...count(0, 5), ...count(2, 7)),
    jumps: [1, 5],
    end: 10,
  },
  { name: "they jump by hours", lines: both(...count(0, 5), ...count(7200, 7205)), jumps: [1, 5], end: 10 },
  { name: "a pause of two minutes", lines: both(0, 1, 120, 121), jumps: null, end: 122 },
  {
    name: "an image that does not change for an hour, with audio",
    lines: [...both(0, 1), ...only(1, ...count(2, 3600)), ...both(3600, 3601)],
    jumps: null,
    end: 3602,
  },
  { name: "slides, one an hour", lines: only(0, 0, 3600, 7200), jumps: null, end: 7201 },
  // Their durations, of a second each, are doubted.
  { name: "frames out of order", lines: only(0, 0, 0.4, 0.2, 0.1, 0.3, 0.8, 0.6, 0.5, 0.7), jumps: null, end: 0.9 },
  {
    name: "a transport stream's clock by 11 s",
    lines: both(...count(0, 5), ...count(16, 20)),
    isDiscontinuous: true,
    jumps: [1, 5],
    end: 9,
  },
  {
    name: "a pause of 9 s in a transport stream",
    lines: both(...count(0, 5), ...count(14, 18)),
    isDiscontinuous: true,
    jumps: null,
    end: 18,
  },
  {
    name: "a transport stream that restarts",
    lines: both(...count(0, 5), ...count(0, 5)),
    isDiscontinuous: true,
    jumps: [1, 5],
    end: 10,
  },
];

describe("where the times of packets jump", () => {
  test.each(ROWS.map((row) => [row.name, row] as const))("%s", (_, { lines, jumps, end, isDiscontinuous = false }) => {
    const tracks = new Map([0, 1].map((index) => [index, new TrackTimes(false)]));
    const reader = new PacketLines(tracks, { clock: isDiscontinuous ? "discontinuous" : "continuous" });
    reader.take(`${lines.join("\n")}\n`);
    const found = reader.jumps;
    expect(found && [found.count, found.firstSeconds]).toEqual(jumps);
    expect(tracks.get(0)?.end).toBeCloseTo(end);
    // What ffmpeg corrects by itself is not corrected again.
    expect((found?.shifts.length ?? 0) > 0).toBe(jumps !== null && !isDiscontinuous);
  });

  test("hostile times cause a limited number of shifts", () => {
    const tracks = new Map([0, 1].map((index) => [index, new TrackTimes(false)]));
    const reader = new PacketLines(tracks, { clock: "continuous" });
    for (let at = 0; at < 5000; at++) reader.take(`${both(5, 0).join("\n")}\n`);
    expect(reader.jumps?.shifts.length).toBeLessThan(1000);
  });
});

import { describe, expect, test } from "vitest";
import { runInSlices } from "#src/lib/base/time-slices.ts";
import { align } from "#src/lib/subtitles/align/align.ts";
import { talk } from "#test/support/lib/random-dialogue.ts";

/** The longest iteration of the event loop until `stop`, in milliseconds of processor time. */
function longestIteration() {
  const now = () => {
    const { user, system } = process.threadCpuUsage();
    return (user + system) / 1000;
  };
  let longest = 0;
  let last = now();
  let next: NodeJS.Immediate;
  const iteration = () => {
    longest = Math.max(longest, now() - last);
    last = now();
    next = setImmediate(iteration);
  };
  next = setImmediate(iteration);
  return {
    stop() {
      clearImmediate(next);
      return Math.max(longest, now() - last);
    },
  };
}

describe("tracks of full size", () => {
  const film = talk({ cues: 1500, seed: 2 });
  const later = film.map((own) => ({ ...own, startMs: own.startMs + 700, endMs: own.endMs + 700 }));
  const yes = film.map((own) => ({ ...own, text: "Yes." }));
  const long = talk({ cues: 20_000, seed: 3 });
  const novel = [{ startMs: 0, endMs: 5000, text: "all in one ".repeat(180_000) }];
  test.each([
    ["1,500 cues", film, later, 1500],
    ["1,500 cues that are all one word", yes, yes, 1500],
    ["one of them fewer", yes, yes.slice(1), 0],
    ["no common word", film, film.map((own, k) => ({ ...own, text: `only${k} here${k}` })), 0],
    ["20,000 cues", long, long, 20_000],
    ["2 MB in one cue", novel, novel, 1],
  ])("%s do not block others", async (_, track, reference, anchorCount) => {
    const delays: number[] = [];
    const costs: number[] = [];
    // The best of several runs, because garbage collection adds to some.
    for (let run = 0; run < 4; run++) {
      const slices = longestIteration();
      const used = process.cpuUsage();
      expect((await runInSlices(align(track, reference))).anchorCount).toBe(anchorCount);
      const { user, system } = process.cpuUsage(used);
      delays.push(slices.stop());
      costs.push((user + system) / 1000);
    }
    // A slice is a few milliseconds.
    expect(Math.min(...delays)).toBeLessThan(50);
    if (track.length <= 1500) expect(Math.min(...costs)).toBeLessThan(200);
  });
});

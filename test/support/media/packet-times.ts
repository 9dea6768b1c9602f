import { expect } from "vitest";
import { ffprobe } from "./sources.ts";

/** Seconds at which the packets of a stream begin, in order. */
export async function packetTimes(file: string, stream: string): Promise<number[]> {
  const lines = await ffprobe("-select_streams", stream, "-show_entries", "packet=pts_time", "-of", "csv=p=0", file);
  return lines
    .split("\n")
    .filter(Boolean)
    .map(Number.parseFloat)
    .toSorted((a, b) => a - b);
}

export function expectRegular(all: readonly number[], step: number): void {
  for (const [index, time] of all.entries())
    if (index > 0) expect(time - (all[index - 1] as number), `packet ${index}`).toBeCloseTo(step, 3);
}

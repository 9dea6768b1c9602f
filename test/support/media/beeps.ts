import { ffmpeg } from "./sources.ts";

/** Test material in which each second begins with a white flash and a beep, both of a tenth of a second. */

const LENGTH = 0.1;

/** Inputs of ffmpeg. `size` such as 320x180; the image is black between the flashes. */
export const flashes = (size: string, rate: string | number, seconds: number): string[] => [
  ...["-f", "lavfi", "-i"],
  `color=black:s=${size}:r=${rate}:d=${seconds},drawbox=enable='lt(mod(t,1),${LENGTH})':color=white:t=fill`,
];
export const beeps = (seconds: number, { rate = 48000, layout = "stereo", hertz = 1000 } = {}): string[] => {
  const one = `if(lt(mod(t,1),${LENGTH}),0.8*sin(2*PI*${hertz}*t),0)`;
  const count = { mono: 1, stereo: 2, "5.1": 6 }[layout] ?? 1;
  return ["-f", "lavfi", "-i", `aevalsrc='${Array(count).fill(one).join("|")}':s=${rate}:c=${layout}:d=${seconds}`];
};

const RATE = 8000;

/** When the beeps of a file or playlist begin, in seconds. */
export async function beepsOf(input: string, track = 0): Promise<number[]> {
  // Where there are no samples there is silence.
  const filters = ["-map", `0:a:${track}`, "-af", `aresample=${RATE}:async=1:first_pts=0`, "-ac", "1"];
  const pcm = await ffmpeg("-i", input, ...filters, "-f", "s16le", "-");
  const samples = new Int16Array(pcm.buffer, pcm.byteOffset, pcm.length >> 1);
  return onsets(
    Array.from(samples, (sample) => Math.abs(sample) > 2500),
    RATE,
    0.5,
  );
}

/** When its flashes begin. `rate`: its frames per second, or those that it is looked at. */
export async function flashesOf(input: string, rate: number): Promise<number[]> {
  const gray = ["-vf", `scale=16:16:flags=area,format=gray,fps=${rate}:start_time=0`, "-f", "rawvideo"];
  // Filters that are built again, because the frames change, would begin at 0 again.
  const pixels = await ffmpeg("-reinit_filter:v", "0", "-i", input, "-map", "0:v:0", ...gray, "-");
  const frames = Array.from({ length: pixels.length >> 8 }, (_, at) => {
    const x = 8;
    const y = 8;
    return (pixels[at * 256 + y * 16 + x] ?? 0) > 120;
  });
  return onsets(frames, rate, 0.5);
}

/** Where a signal begins that was not there for so many seconds. */
function onsets(signal: readonly boolean[], rate: number, pause: number): number[] {
  const found: number[] = [];
  let last = Number.NEGATIVE_INFINITY;
  for (const [at, isOn] of signal.entries()) {
    if (!isOn) continue;
    if (at - last > pause * rate) found.push(at / rate);
    last = at;
  }
  return found;
}

/** The largest distance between a beep and its flash, in seconds; infinite when one of `count` is missing. */
export function worstOffset(heard: readonly number[], seen: readonly number[], count: number): number {
  if (seen.length < count || heard.length < count) return Number.POSITIVE_INFINITY;
  return seen.reduce((worst, time) => Math.max(worst, Math.min(...heard.map((one) => Math.abs(one - time)))), 0);
}

import { writeFileSync } from "node:fs";
import { headerOf } from "#platform/outbound/transcribe/wav.ts";

const RATE = 16_000;

/** Writes a WAV file of `seconds` with a tone in the given stretches of seconds, else silence. Returns its path. */
export function toneFile(
  path: string,
  seconds: number,
  tones: readonly (readonly [from: number, to: number])[],
): string {
  const samples = new Int16Array(seconds * RATE);
  for (const [from, to] of tones)
    for (let at = from * RATE; at < to * RATE; at++) samples[at] = Math.sin(at / 10) * 8000;
  const bytes = Buffer.from(samples.buffer);
  writeFileSync(path, Buffer.concat([headerOf(bytes.length), bytes]));
  return path;
}

import type { Sliced } from "../time-slices.ts";
import type { Cue } from "./parse.ts";

const PER_STEP = 500;

type Place = Pick<Cue, "textAt">;

/** The payloads of the cues as they stand in the text, with its own line breaks. */
export const payloadsOf = (source: string, cues: readonly Place[]): string[] =>
  cues.map(({ textAt }) => source.slice(textAt.from, textAt.to));

/** A WebVTT text with new payloads for its cues; every byte around them stays. */
export function* withPayloads(source: string, cues: readonly Place[], payloads: readonly string[]): Sliced<string> {
  const pieces: string[] = [];
  let done = 0;
  for (const [index, { textAt }] of cues.entries()) {
    pieces.push(source.slice(done, textAt.from), payloads[index] as string);
    done = textAt.to;
    if (index % PER_STEP === 0) yield;
  }
  pieces.push(source.slice(done));
  return pieces.join("");
}

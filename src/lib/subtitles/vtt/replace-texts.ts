import type { Sliced } from "#lib/base";
import type { Cue } from "./parse.ts";

const PER_STEP = 500;

type PayloadPosition = Pick<Cue, "textAt">;

/** The payloads of the cues as in the text, with its own line breaks. */
export const payloadsOf = (source: string, cues: readonly PayloadPosition[]): string[] =>
  cues.map(({ textAt }) => source.slice(textAt.from, textAt.to));

/** Replaces the payloads of a WebVTT text; all other bytes are unchanged. */
export function* withPayloads(
  source: string,
  cues: readonly PayloadPosition[],
  payloads: readonly string[],
): Sliced<string> {
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

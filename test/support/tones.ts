import { headerOf } from "#platform/outbound/transcribe/wav.ts";

/**
 * "Speech" that a program recognizes without errors: each word is a tone of its own frequency. Together they prove that all of the
 * audio is heard once, at its time, wherever it is cut.
 */

const RATE = 16_000;
const FIRST_HERTZ = 300;
const STEP_HERTZ = 8;
const WORD_MS = 250;

/** `w12`, with its start in ms. */
export type Tone = { text: string; startMs: number };

/** A WAV file (16 kHz, one channel) that says words one after another; `pausesMs` are the pauses after each, in order. */
export function tones(pausesMs: readonly number[]): { wav: Buffer; words: Tone[] } {
  const words: Tone[] = [];
  let startMs = 500;
  for (const [index, pauseMs] of pausesMs.entries()) {
    words.push({ text: `w${index}`, startMs });
    startMs += WORD_MS + pauseMs;
  }
  const samples = new Int16Array((startMs * RATE) / 1000);
  for (const [index, word] of words.entries()) {
    const from = (word.startMs * RATE) / 1000;
    const turn = (2 * Math.PI * (FIRST_HERTZ + index * STEP_HERTZ)) / RATE;
    for (let at = 0; at < (WORD_MS * RATE) / 1000; at++) samples[from + at] = 12_000 * Math.sin(turn * at);
  }
  const bytes = Buffer.from(samples.buffer);
  return { wav: Buffer.concat([headerOf(bytes.length), bytes]), words };
}

/**
 * A program for Node.js that recognizes them: a transcription command. It writes a line to `log.txt` in its own folder, with the
 * environment variable RECOGNIZER, when it begins, and waits there while `wait` exists. Into a silence of three seconds it invents
 * a phrase, as Whisper does.
 */
export const RECOGNIZER = `
import { appendFileSync, existsSync, readFileSync } from "node:fs";
const nextTo = (name) => new URL(name, import.meta.url);
appendFileSync(nextTo("log.txt"), process.env.RECOGNIZER + "\\n");
const wav = readFileSync(process.argv[2]);
const samples = new Int16Array(wav.buffer.slice(wav.byteOffset + 44));
while (existsSync(nextTo("wait"))) await new Promise((resolve) => setTimeout(resolve, 50));
const HOP = ${RATE / 100};
const isLoud = (hop) => samples.subarray(hop * HOP, (hop + 1) * HOP).some((sample) => Math.abs(sample) > 3000);
const words = [];
const invented = [];
for (let hop = 0; hop * HOP < samples.length; hop++) {
  if (!isLoud(hop)) continue;
  const start = hop;
  while (hop * HOP < samples.length && isLoud(hop)) hop++;
  if (hop - start < 10) continue;
  const crossings = [];
  for (let at = (start + 3) * HOP; at < (hop - 3) * HOP; at++) {
    const [one, two] = [samples[at], samples[at + 1]];
    if (one < 0 && two >= 0) crossings.push(at + one / (one - two));
  }
  const hertz = ((crossings.length - 1) * ${RATE}) / (crossings.at(-1) - crossings[0]);
  const word = "w" + Math.round((hertz - ${FIRST_HERTZ}) / ${STEP_HERTZ});
  const before = words.at(-1)?.end ?? 0;
  if (start / 100 - before > 3) {
    const [from, to] = [before + 1, before + 2];
    invented.push({ start: from, end: to, text: "Thanks for watching.", words: [{ word: "Thanks", start: from, end: to }] });
  }
  words.push({ word, start: start / 100, end: hop / 100 });
}
const text = words.map(({ word }) => word).join(" ");
const segments = words.length === 0 ? [] : [{ start: words[0].start, end: words.at(-1).end, text, words }];
process.stdout.write(JSON.stringify({ language: "en", segments: [...invented, ...segments] }));
`;

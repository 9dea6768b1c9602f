import { appendFile, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { ShownCaption } from "../../lib/closed-captions/cea608.ts";
import { escapeText } from "../../lib/cue-text/fragment.ts";
import { type PlainCue, writeCue } from "../../lib/vtt/write.ts";

/** The captions of a stream that is recorded, in its directory: a line of JSON for each, which survives the process. */

const FILE = "captions.jsonl";
/** A file of more is not a text of this program. */
const MAX_BYTES = 64 * 2 ** 20;
/** Captions of the same text with less between them are one, which the end of a segment has divided. */
const SAME_MS = 150;

/** What a recording has of one service: a WebVTT text. `language`: null where it is not known. */
export type RecordedCaptions = { service: string; language: string | null; vtt: string };

/** Appends captions in order. A disk that is full loses them, not the stream. */
export class WrittenCaptions {
  readonly #path: string;
  readonly #admit: () => Promise<void>;
  #written: Promise<unknown> = Promise.resolve();

  /** `admit` throws when the disk is full. */
  constructor(folder: string, admit: () => Promise<void>) {
    this.#path = join(folder, FILE);
    this.#admit = admit;
  }

  add(caption: ShownCaption): void {
    const append = () => appendFile(this.#path, `${JSON.stringify(caption)}\n`);
    this.#written = this.#written
      .then(this.#admit)
      .then(append)
      .catch(() => {});
  }

  /** Resolves when all are in the file. */
  async settled(): Promise<void> {
    await this.#written;
  }
}

/** The captions between `fromMs` and `toMs`, with times from `fromMs`; empty without any. */
export async function readCaptions(
  folder: string,
  { fromMs = 0, toMs = Number.POSITIVE_INFINITY }: { fromMs?: number; toMs?: number } = {},
): Promise<RecordedCaptions[]> {
  const text = await readFile(join(folder, FILE), "utf8").catch(() => "");
  if (text.length > MAX_BYTES) return [];
  const all = text.split("\n").flatMap(parsed);
  return [...new Set(all.map(({ service }) => service))].sort().flatMap((service) => {
    const cues: PlainCue[] = [];
    const own = all.filter((one) => one.service === service);
    for (const { startMs, endMs, text: shown, row } of own) {
      const [from, to] = [Math.max(startMs, fromMs) - fromMs, Math.min(endMs, toMs) - fromMs];
      if (from >= to) continue;
      const cue = { id: null, startMs: from, endMs: to, settings: settingsOf(row), text: escapeText(shown) };
      const last = cues.at(-1);
      const isSame = last?.text === cue.text && last.settings === cue.settings && from - last.endMs < SAME_MS;
      if (last && isSame) last.endMs = to;
      else cues.push(cue);
    }
    const language = own[0]?.language ?? null;
    return cues.length === 0
      ? []
      : [{ service, language, vtt: `WEBVTT\n\n${cues.map((cue) => `${writeCue(cue)}\n`).join("\n")}` }];
  });
}

/** Of a row on the 15 of the screen; captions in the lower third are where players show them anyway. */
export const settingsOf = (row: number): string => (row < 9 ? `line:${Math.round((100 * row) / 15)}%` : "");

/** A line that was written in part, because the process was killed, is left out. */
function parsed(line: string): ShownCaption[] {
  try {
    return line === "" ? [] : [JSON.parse(line)];
  } catch {
    return [];
  }
}

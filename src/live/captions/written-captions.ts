import { appendFile, open } from "node:fs/promises";
import { join } from "node:path";
import { MAX_SUBTITLE_BYTES } from "#lib/base";
import type { ShownCaption } from "#lib/closed-captions";
import { escapeText, type PlainCue, writeCue } from "#lib/subtitles";

/** The captions of a stream that is recorded, in its directory: a line of JSON for each, which survives the process. */

const FILE = "captions.jsonl";
const HEADER = "WEBVTT\n";
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
  const texts = new Map<string, ServiceText>();
  for await (const line of linesOf(join(folder, FILE))) {
    const caption = parsed(line);
    if (caption === null) continue;
    const from = Math.max(caption.startMs, fromMs) - fromMs;
    const to = Math.min(caption.endMs, toMs) - fromMs;
    if (from >= to) continue;
    const text = texts.get(caption.service) ?? new ServiceText(caption.language ?? null);
    texts.set(caption.service, text);
    text.add({ id: null, startMs: from, endMs: to, settings: settingsOf(caption.row), text: escapeText(caption.text) });
  }
  return [...texts]
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([service, text]) => ({ service, language: text.language, vtt: text.end() }));
}

/** Line by line: a day of captions is never in memory, nor parsed in one go while streams wait. */
async function* linesOf(path: string): AsyncGenerator<string> {
  // A file that cannot be read costs the captions, not the recording.
  const file = await open(path).catch(() => null);
  if (file) yield* file.readLines();
}

/** The WebVTT text of one service, while it is read. */
class ServiceText {
  readonly language: string | null;
  readonly #blocks = [HEADER];
  #bytes = HEADER.length;
  #last: PlainCue | null = null;

  constructor(language: string | null) {
    this.language = language;
  }

  add(cue: PlainCue): void {
    const last = this.#last;
    const isSame = last?.text === cue.text && last.settings === cue.settings && cue.startMs - last.endMs < SAME_MS;
    if (last && isSame) last.endMs = cue.endMs;
    else {
      this.#write();
      this.#last = cue;
    }
  }

  end(): string {
    this.#write();
    return this.#blocks.join("\n");
  }

  /** What is over the limit is left out: the beginning is better than nothing. */
  #write(): void {
    if (!this.#last) return;
    const block = `${writeCue(this.#last)}\n`;
    this.#bytes += Buffer.byteLength(block) + 1;
    if (this.#bytes <= MAX_SUBTITLE_BYTES) this.#blocks.push(block);
    this.#last = null;
  }
}

/** The WebVTT settings of one of the 15 rows of the screen; captions in the lower third are where players show them anyway. */
export const settingsOf = (row: number): string => (row < 9 ? `line:${Math.round((100 * row) / 15)}%` : "");

/** Null for a line that was written in part, because the process was killed. */
function parsed(line: string): ShownCaption | null {
  try {
    return JSON.parse(line);
  } catch {
    return null;
  }
}

import { appendFile, open } from "node:fs/promises";
import { join } from "node:path";
import { CaptionText, type ShownCaption } from "#lib/closed-captions";

/** The captions of a stream that is recorded, in its directory: a line of JSON for each, which survives the process. */

const FILE = "captions.jsonl";

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
  const texts = new Map<string, { language: string | null; text: CaptionText }>();
  for await (const line of linesOf(join(folder, FILE))) {
    const caption = parsed(line);
    if (caption === null) continue;
    const from = Math.max(caption.startMs, fromMs) - fromMs;
    const to = Math.min(caption.endMs, toMs) - fromMs;
    if (from >= to) continue;
    const read = texts.get(caption.service) ?? { language: caption.language ?? null, text: new CaptionText() };
    texts.set(caption.service, read);
    read.text.add({ ...caption, startMs: from, endMs: to });
  }
  return [...texts]
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([service, { language, text }]) => ({ service, language, vtt: text.end() }));
}

/** Line by line: a day of captions is never in memory, nor parsed in one go while streams wait. */
async function* linesOf(path: string): AsyncGenerator<string> {
  // A file that cannot be read costs the captions, not the recording.
  const file = await open(path).catch(() => null);
  if (file) yield* file.readLines();
}

/** Null for a line that was written in part, because the process was killed. */
function parsed(line: string): ShownCaption | null {
  try {
    return JSON.parse(line);
  } catch {
    return null;
  }
}

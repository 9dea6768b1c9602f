import { DOCUMENT_LIMITS, MAX_SUBTITLE_BYTES } from "#lib/base";
import { escapeText, type PlainCue, writeCue } from "#lib/subtitles";
import { type ShownCaption, settingsOf } from "./shown-caption.ts";

const HEADER = "WEBVTT\n";
/** Captions of the same text with less between them are one, which the end of a segment has divided. */
const SAME_MS = 150;

/**
 * The WebVTT text of one service, within the limits of a subtitle, while its captions are read.
 * @example
 * const text = new CaptionText();
 * text.add({ startMs: 0, endMs: 1500, text: "Tom & Jerry", row: 0 });
 * text.end() // => "WEBVTT\n\n00:00:00.000 --> 00:00:01.500 line:0%\nTom &amp; Jerry\n"
 */
export class CaptionText {
  readonly #blocks = [HEADER];
  #bytes = HEADER.length;
  #last: PlainCue | null = null;

  /** Captions in the order in which they begin. */
  add({ startMs, endMs, text, row }: Pick<ShownCaption, "startMs" | "endMs" | "text" | "row">): void {
    const cue = { id: null, startMs, endMs, settings: settingsOf(row), text: escapeText(text) };
    const last = this.#last;
    const isSame = last?.text === cue.text && last.settings === cue.settings && startMs - last.endMs < SAME_MS;
    if (last && isSame) last.endMs = endMs;
    else {
      this.#write();
      this.#last = cue;
    }
  }

  end(): string {
    this.#write();
    return this.#blocks.join("\n");
  }

  /** What is over a limit is left out: the beginning is better than nothing. */
  #write(): void {
    if (!this.#last) return;
    const block = `${writeCue(this.#last)}\n`;
    this.#bytes += Buffer.byteLength(block) + 1;
    if (this.#bytes <= MAX_SUBTITLE_BYTES && this.#blocks.length <= DOCUMENT_LIMITS.cues) this.#blocks.push(block);
    this.#last = null;
  }
}

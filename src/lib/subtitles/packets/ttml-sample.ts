import { type Sliced, TooComplex } from "#lib/base";
import { cuesOfTtml, languageOfTtml } from "../ttml/from-ttml.ts";
import { decodeText } from "../vtt/decode.ts";
import type { PacketCue } from "./packet.ts";

/** A cue of a document, in milliseconds on the timeline of the file. */
export type TimedCue = PacketCue & { startMs: number; endMs: number };
/** `language`: the canonical `xml:lang` of the document; null where it states none. */
export type TtmlSample = { cues: TimedCue[]; skipped: number; language: string | null };
type Range = { startMs: number; endMs: number };

/**
 * The cues of a sample of `stpp` (ISO/IEC 14496-30, 5): a TTML document with times of the presentation, not of the sample, which is
 * shown only while its sample is. Null for one that cannot be read. Linear in time.
 */
export function* readTtmlSample(bytes: Uint8Array, { startMs, endMs }: Range): Sliced<TtmlSample | null> {
  const decoded = decodeText(bytes);
  if ("fault" in decoded) return null;
  // A pause.
  if (decoded.text.trim() === "") return { cues: [], skipped: 0, language: null };
  try {
    const { cues, faults, skipped } = yield* cuesOfTtml(decoded.text, endMs / 1000);
    if (!cues || faults.length > 0) return null;
    const shown = cues.flatMap(({ text, settings, ...cue }): TimedCue[] => {
      const range = { startMs: Math.max(startMs, cue.startMs), endMs: Math.min(endMs, cue.endMs) };
      return range.endMs > range.startMs ? [{ text, settings, ...range }] : [];
    });
    // Others have no text, or are shown with another sample.
    const images = skipped.filter(({ reason }) => reason === "image");
    return { cues: shown, skipped: images.length, language: languageOfTtml(decoded.text) };
  } catch (error) {
    if (!(error instanceof TooComplex)) throw error;
    return null;
  }
}

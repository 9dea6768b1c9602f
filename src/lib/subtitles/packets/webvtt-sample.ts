import { type Box, boxes } from "#lib/isobmff";

/** More than is on screen at once. */
const MAX_CUES = 50;

/** A cue of a sample of `wvtt`, as text. */
export type SampleCue = { payload: Uint8Array; settings: string };

/** The cues of a sample of `wvtt` (ISO/IEC 14496-30, 6.6): none for a pause. What is malformed is left out. */
export function cuesOfSample(bytes: Uint8Array): SampleCue[] {
  const data = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  const content = ({ start, end }: Box) => data.subarray(start, end);
  return [...boxes(data, 0, data.length)]
    .filter(({ type }) => type === "vttc")
    .slice(0, MAX_CUES)
    .flatMap((cue): SampleCue[] => {
      const parts = [...boxes(data, cue.start, cue.end)];
      const payload = parts.find(({ type }) => type === "payl");
      const settings = parts.find(({ type }) => type === "sttg");
      return payload
        ? [{ payload: content(payload), settings: settings ? content(settings).toString("utf8") : "" }]
        : [];
    });
}

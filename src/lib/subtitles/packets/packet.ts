import { fromSrtMarkup } from "../vtt/srt-markup.ts";
import { fromAssEvent } from "./ass-event.ts";
import { fromTimedText } from "./timed-text.ts";
import { settingsOf, vttPayload } from "./vtt-payload.ts";
import { cuesOfSample } from "./webvtt-sample.ts";

/** The formats of packets that are read here. `timed-text` is `tx3g` of MP4 and `text` of QuickTime, `webvtt-sample` is `wvtt` of MP4. */
export type PacketFormat = "subrip" | "ass" | "webvtt" | "webvtt-sample" | "timed-text";

/** What a cue shows, as WebVTT; an empty text for nothing. */
export type PacketCue = { text: string; settings: string };

/** Longer than a screen holds. What is longer is no cue, and is not read. */
export const MAX_PACKET_BYTES = 32 * 1024;
/** As the text of a cue in a SubRip file. */
const MAX_CHARACTERS = 10_000;

const TOP = "line:0";
const lenient = new TextDecoder("utf-8");
/** All but line breaks and tabs. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: what is removed
const CONTROL = /[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]/g;

/** UTF-8, of which what is malformed becomes U+FFFD, with LF for each line break. */
const textOf = (bytes: Uint8Array): string =>
  lenient.decode(bytes).replaceAll("\r\n", "\n").replaceAll("\r", "\n").replaceAll(CONTROL, "");

/**
 * The cues of a packet of a text track, as Matroska (RFC 9559, codec mappings) and MP4 store it: those that are on screen while it
 * lasts. `settings` of a WebVTT cue, where they are not in the packet. Null for what is longer than a cue, or malformed. Linear
 * in time.
 */
export function readPacket(
  format: PacketFormat,
  bytes: Uint8Array,
  { settings = "" }: { settings?: string } = {},
): PacketCue[] | null {
  if (bytes.length > MAX_PACKET_BYTES) return null;
  const cues = cuesOf(format, bytes, settings);
  return cues?.some(({ text }) => text.length > MAX_CHARACTERS) ? null : cues;
}

function cuesOf(format: PacketFormat, bytes: Uint8Array, settings: string): PacketCue[] | null {
  switch (format) {
    case "subrip":
      return [placed(fromSrtMarkup(textOf(bytes)))];
    case "ass": {
      const event = fromAssEvent(textOf(bytes));
      return event && [placed(event)];
    }
    case "webvtt":
      return [vttCue(bytes, settings)];
    case "webvtt-sample":
      return cuesOfSample(bytes).map((cue) => vttCue(cue.payload, cue.settings));
    case "timed-text": {
      const text = fromTimedText(bytes);
      return text === null ? null : [{ text, settings: "" }];
    }
  }
}

const vttCue = (payload: Uint8Array, settings: string): PacketCue => ({
  text: vttPayload(textOf(payload)),
  settings: settingsOf(settings),
});

const placed = ({ text, top }: { text: string; top: boolean }): PacketCue => ({ text, settings: top ? TOP : "" });

import { Payload, PLAIN, type Style } from "./markup.ts";

/*
 * Samples of `tx3g` (3GPP TS 26.245, 5.17) and of `text` (QuickTime File Format, text sample data): a length, the text, and boxes
 * that style it.
 */

const LENGTH_BYTES = 2;
const BOX_HEAD_BYTES = 8;
/** A style record has the first and the last character, a font, and the face (5.17.1.1). */
const STYLE_BYTES = 12;
const MAX_STYLES = 1000;
const BOLD = 1;
const ITALIC = 2;
const UNDERLINED = 4;

const strict = new TextDecoder("utf-8", { fatal: true });
const wide = new TextDecoder("utf-16be");
/** What QuickTime files have that are older than Unicode. */
const macintosh = new TextDecoder("macintosh");
/** All but line breaks and tabs. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: what is removed
const CONTROL = /[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]/g;

/** The text of a sample as a WebVTT payload, empty for a pause; null for a sample that ends before its text. Linear in time. */
export function fromTimedText(bytes: Uint8Array): string | null {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  if (bytes.length < LENGTH_BYTES) return bytes.length === 0 ? "" : null;
  const end = LENGTH_BYTES + view.getUint16(0);
  if (end > bytes.length) return null;
  const text = decoded(bytes.subarray(LENGTH_BYTES, end));
  const payload = new Payload();
  const add = (part: string, style: Style) =>
    payload.add(part.replaceAll("\r\n", "\n").replaceAll("\r", "\n").replaceAll(CONTROL, ""), style);
  const styles = stylesIn(view, end);
  if (styles.length === 0) add(text, PLAIN);
  else {
    const characters = [...text];
    let at = 0;
    for (const { from, to, style } of styles) {
      if (from < at) continue;
      add(characters.slice(at, from).join(""), PLAIN);
      add(characters.slice(from, to).join(""), style);
      at = Math.min(to, characters.length);
    }
    add(characters.slice(at).join(""), PLAIN);
  }
  return payload.end();
}

function decoded(bytes: Uint8Array): string {
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return wide.decode(bytes.subarray(2));
  try {
    return strict.decode(bytes);
  } catch {
    return macintosh.decode(bytes);
  }
}

type StyledRange = { from: number; to: number; style: Style };

/** In the order of the file, which is that of the text. */
function stylesIn(view: DataView, from: number): StyledRange[] {
  const styles: StyledRange[] = [];
  for (let at = from; at + BOX_HEAD_BYTES <= view.byteLength; ) {
    const size = view.getUint32(at);
    if (size < BOX_HEAD_BYTES || at + size > view.byteLength) break;
    if (view.getUint32(at + 4) === STYL && size >= BOX_HEAD_BYTES + 2) {
      const count = Math.min(MAX_STYLES, view.getUint16(at + BOX_HEAD_BYTES));
      for (let index = 0; index < count; index++) {
        const record = at + BOX_HEAD_BYTES + 2 + index * STYLE_BYTES;
        if (record + STYLE_BYTES > at + size) break;
        const face = view.getUint8(record + 6);
        const style = { b: (face & BOLD) > 0, i: (face & ITALIC) > 0, u: (face & UNDERLINED) > 0 };
        const range = { from: view.getUint16(record), to: view.getUint16(record + 2) };
        if (range.to > range.from) styles.push({ ...range, style });
      }
    }
    at += size;
  }
  return styles;
}
const STYL = 0x7374796c;

import { Payload, PLAIN, type Style } from "./markup.ts";

/*
 * Events of ASS and SSA as Matroska stores them: `ReadOrder, Layer, Style, Name, MarginL, MarginR, MarginV, Effect, Text`, without
 * times. Override tags have no specification: VSFilter and libass are what files are written for.
 */

/** Those before the text. */
const FIELDS = 8;
/** Line breaks and the hard space; `\n` breaks a line in one mode of wrapping only, and is a space in the others. */
const ESCAPES: Record<string, string> = { N: "\n", n: " ", h: "\u00a0" };
/** Longer names that begin alike, such as `\bord2` and `\iclip(…)`, are not among them. */
const OVERRIDE = /\\(?:(an|a|b|i|u|p)(\d{0,4})(?=[\\\s]|$)|(r)[^\\]{0,100})/g;
/** A weight; 0 and 1 are off and on. */
const BOLD_WEIGHT = 600;

type State = { style: Style; isDrawing: boolean; top: boolean };

/** The text of an event; null when fields are missing. `top`: it is positioned at the top. Linear in time. */
export function fromAssEvent(event: string): { text: string; top: boolean } | null {
  let from = 0;
  for (let index = 0; index < FIELDS; index++) {
    const comma = event.indexOf(",", from);
    if (comma < 0) return null;
    from = comma + 1;
  }
  return fromAssText(event.slice(from).replaceAll("\n", " "));
}

function fromAssText(text: string): { text: string; top: boolean } {
  const payload = new Payload();
  const state: State = { style: PLAIN, isDrawing: false, top: false };
  for (let at = 0; at < text.length; ) {
    const open = text.indexOf("{", at);
    const close = open < 0 ? -1 : text.indexOf("}", open);
    // A brace that does not close is text.
    const until = close < 0 ? text.length : open;
    if (!state.isDrawing) payload.add(unescaped(text.slice(at, until)), state.style);
    if (close < 0) break;
    apply(text.slice(open + 1, close), state);
    at = close + 1;
  }
  return { text: payload.end(), top: state.top };
}

const unescaped = (text: string): string =>
  text.includes("\\") ? text.replaceAll(/\\([Nnh])/g, (whole, name: string) => ESCAPES[name] ?? whole) : text;

/** Anything else in braces is a comment, or styles only. */
function apply(overrides: string, state: State): void {
  for (const [, name, digits = "", reset] of overrides.matchAll(OVERRIDE)) {
    const value = Number(digits);
    if (reset) state.style = PLAIN;
    else if (name === "p") state.isDrawing = value > 0;
    // Rows of a number pad, or those of SSA: 5 to 7 are at the top.
    else if (name === "an") state.top = value >= 7 && value <= 9;
    else if (name === "a") state.top = value >= 5 && value <= 7;
    else if (name === "b") state.style = { ...state.style, b: value === 1 || value >= BOLD_WEIGHT };
    else if (name === "i" || name === "u") state.style = { ...state.style, [name]: value === 1 };
  }
}

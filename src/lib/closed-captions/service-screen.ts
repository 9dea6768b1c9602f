import { extendedCharacter } from "./characters.ts";
import { CaptionWindow } from "./window.ts";

/** What a service shows. */
export type Screen = { text: string; row: number };

const WINDOWS = 8;
const EXTENDED = 0x10;
/** Bytes after a code of the set C0, by its upper bits (ANSI/CTA-708-E, 7.1.4). */
const argumentsOfControl = (code: number): number => (code < 0x10 ? 0 : code < 0x18 ? 1 : 2);
/** Bytes after codes of the set C1, from 0x80 on (8.10.5). */
const ARGUMENTS = [
  ...Array(8).fill(0), // SetCurrentWindow
  ...[1, 1, 1, 1, 1, 1], // ClearWindows, DisplayWindows, HideWindows, ToggleWindows, DeleteWindows, Delay
  ...[0, 0], // DelayCancel, Reset
  ...[2, 3, 2], // SetPenAttributes, SetPenColor, SetPenLocation
  ...[0, 0, 0, 0], // reserved
  4, // SetWindowAttributes
  ...Array(8).fill(6), // DefineWindow
] as readonly number[];
const CODE = { backspace: 8, formFeed: 12, carriageReturn: 13, erasedReturn: 14 } as const;

/** The windows of one service of CEA-708, as its commands and texts change them. Colors, fonts and delays are not kept. */
export class ServiceScreen {
  #windows: (CaptionWindow | undefined)[] = [];
  #current = 0;

  /** A service block. Codes do not continue in the next one. Linear in its bytes. */
  write(block: readonly number[]): void {
    for (let at = 0; at < block.length; ) {
      const code = block[at++] as number;
      if (code === EXTENDED) at = this.#extended(block, at);
      else if (code < 0x20) {
        this.#control(code);
        at += argumentsOfControl(code);
      } else if (code >= 0x80 && code < 0xa0) {
        const count = ARGUMENTS[code - 0x80] as number;
        if (at + count > block.length) return;
        this.#command(code, block.slice(at, at + count));
        at += count;
      } else this.#window?.write(code === 0x7f ? "♪" : String.fromCharCode(code));
    }
  }

  /** All visible windows, from top to bottom; null where nothing is shown. */
  get shown(): Screen | null {
    const windows = this.#windows.flatMap((window) => window?.shown() ?? []).sort((one, other) => one.row - other.row);
    const [first] = windows;
    return first ? { text: windows.flatMap(({ rows }) => rows).join("\n"), row: first.row } : null;
  }

  get #window(): CaptionWindow | undefined {
    return this.#windows[this.#current];
  }

  /** A code of the sets C2, G2, C3 or G3 (7.1.6 to 7.1.9). Returns where the next one begins. */
  #extended(block: readonly number[], at: number): number {
    const code = block[at];
    if (code === undefined) return at;
    if (code < 0x20) return at + 1 + (code >> 3);
    if (code >= 0x80 && code < 0x90) return at + 1 + (code < 0x88 ? 4 : 5);
    // Their length is in the next byte.
    if (code >= 0x90 && code < 0xa0) return at + 2 + ((block[at + 1] ?? 0) & 0x3f);
    this.#window?.write(extendedCharacter(code));
    return at + 1;
  }

  #control(code: number): void {
    const window = this.#window;
    if (code === CODE.backspace) window?.backspace();
    else if (code === CODE.formFeed) {
      window?.clear();
      window?.moveTo(0, 0);
    } else if (code === CODE.carriageReturn) window?.nextRow();
    else if (code === CODE.erasedReturn) window?.eraseRow();
  }

  #command(code: number, args: readonly number[]): void {
    const [first = 0, second = 0] = args;
    if (code < 0x88) this.#current = code & 7;
    else if (code === 0x88) this.#each(first, (window) => window.clear());
    else if (code === 0x89) this.#each(first, (window) => (window.isVisible = true));
    else if (code === 0x8a) this.#each(first, (window) => (window.isVisible = false));
    else if (code === 0x8b) this.#each(first, (window) => (window.isVisible = !window.isVisible));
    else if (code === 0x8c) this.#windows = this.#windows.map((window, at) => ((first >> at) & 1 ? undefined : window));
    else if (code === 0x8f) this.#windows = [];
    else if (code === 0x92) this.#window?.moveTo(first & 15, second & 63);
    else if (code >= 0x98) this.#define(code & 7, args);
  }

  #each(bitmap: number, change: (window: CaptionWindow) => void): void {
    for (let at = 0; at < WINDOWS; at++) {
      const window = this.#windows[at];
      if (window && (bitmap >> at) & 1) change(window);
    }
  }

  #define(number: number, [flags = 0, vertical = 0, , rows = 0, columns = 0]: readonly number[]): void {
    const window = this.#windows[number] ?? new CaptionWindow();
    this.#windows[number] = window;
    this.#current = number;
    window.define({
      isVisible: (flags & 0x20) !== 0,
      isRelative: (vertical & 0x80) !== 0,
      vertical: vertical & 0x7f,
      anchor: rows >> 4,
      rows: (rows & 15) + 1,
      columns: (columns & 63) + 1,
    });
  }
}

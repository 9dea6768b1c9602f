import { escapeText } from "../cue-text/fragment.ts";

/** The tags that are kept, the outer one first. */
const TAGS = ["b", "i", "u"] as const;
export type Style = Readonly<Record<(typeof TAGS)[number], boolean>>;
export const PLAIN: Style = { b: false, i: false, u: false };

/** Runs of text with styles, as a WebVTT payload (4.2.2) without blank lines; empty when there is nothing to read. */
export class Payload {
  readonly #parts: string[] = [];
  #open: string[] = [];
  #line: { text: string; hasText: boolean }[] = [];

  add(text: string, style: Style): void {
    for (const [index, line] of text.split("\n").entries()) {
      if (index > 0) this.#endLine();
      if (line === "") continue;
      const wanted = TAGS.filter((tag) => style[tag]);
      let shared = 0;
      while (shared < this.#open.length && this.#open[shared] === wanted[shared]) shared++;
      const tags = [...this.#closing(shared), ...wanted.slice(shared).map((tag) => `<${tag}>`)];
      this.#open = wanted;
      this.#line.push({ text: tags.join("") + escapeText(line), hasText: line.trim() !== "" });
    }
  }

  end(): string {
    this.#endLine();
    const text = this.#parts.join("\n");
    return text === "" ? "" : text + this.#closing(0).join("");
  }

  /** A line without text leaves no line; its tags are part of the next one. */
  #endLine(): void {
    const line = this.#line;
    if (!line.some(({ hasText }) => hasText)) return;
    this.#parts.push(
      line
        .map(({ text }) => text)
        .join("")
        .trim(),
    );
    this.#line = [];
  }

  #closing(from: number): string[] {
    return this.#open
      .slice(from)
      .reverse()
      .map((tag) => `</${tag}>`);
  }
}

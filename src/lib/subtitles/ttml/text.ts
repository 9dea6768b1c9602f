import { escapeText } from "../cue-text/fragment.ts";

/** A text with the WebVTT tags around it, the outer one first: `b`, `lang de`. A line break is the text `\n`. */
export type Run = { text: string; tags: readonly string[]; isPreserved: boolean };

/**
 * The payload (WebVTT, 4.2.2) of texts in order, without blank lines; empty when there is nothing to read. White space
 * is collapsed unless a run is preserved (TTML 2, 8.2.10).
 */
export function payloadOf(runs: readonly Run[]): string {
  const written: string[] = [];
  let open: readonly string[] = [];
  for (const line of linesOf(runs)) {
    if (written.length > 0) written.push("\n");
    for (const { text, tags } of line) {
      let shared = 0;
      while (shared < open.length && open[shared] === tags[shared]) shared++;
      written.push(...closing(open, shared), ...tags.slice(shared).map((tag) => `<${tag}>`), escapeText(text));
      open = tags;
    }
  }
  return [...written, ...closing(open, 0)].join("");
}

/** The end of `<rt>` may be left out, and that of `<lang de>` is `</lang>`. */
const closing = (open: readonly string[], from: number): string[] =>
  open
    .slice(from)
    .reverse()
    .map((tag) => `</${tag.split(" ", 1)[0]}>`);

/** Lines with text, without space at their edges. */
function linesOf(runs: readonly Run[]): Run[][] {
  const lines: Run[][] = [[]];
  for (const run of runs) {
    const text = run.isPreserved || run.text === "\n" ? run.text : run.text.replace(/[ \t\r\n]+/g, " ");
    for (const [index, part] of text.split(/\r\n|\r|\n/).entries()) {
      if (index > 0) lines.push([]);
      const line = lines.at(-1) as Run[];
      const follows = line.length > 0 && !line.at(-1)?.text.endsWith(" ");
      const kept = follows || run.isPreserved ? part : part.trimStart();
      if (kept !== "") line.push({ ...run, text: kept });
    }
  }
  return lines.map(trimmed).filter((line) => line.length > 0);
}

function trimmed(line: Run[]): Run[] {
  let from = 0;
  let to = line.length;
  while (from < to && (line[from] as Run).text.trim() === "") from++;
  while (to > from && (line[to - 1] as Run).text.trim() === "") to--;
  const kept = line.slice(from, to);
  const first = kept[0];
  if (first) kept[0] = { ...first, text: first.text.trimStart() };
  const last = kept.at(-1);
  if (last) kept[kept.length - 1] = { ...last, text: last.text.trimEnd() };
  return kept;
}

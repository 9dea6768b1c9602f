import { HAS_SPACELESS } from "../spaceless.ts";

/** A tag contains no other `<`: the search for its end stops at the next one, and takes linear time. */
const TOKENS = /<[^<>]*>|&[a-z#\d]{1,20};|[\s\S]/giu;

/** Longer than any player shows; bounds the cost of hostile input. */
const MAX_CHARACTERS = 5000;
const MAX_LINES = 20;

/** Breaks one line into up to `lines` of similar length, at spaces, or anywhere in scripts without spaces. */
export function breakLines(text: string, lines: number, terminator: string): string {
  if (lines <= 1 || text.length > MAX_CHARACTERS) return text;
  const tokens: string[] = text.match(TOKENS) ?? [];
  const isTag = (token: string) => token.startsWith("<") && token.length > 1;
  /** Possible line ends, and the visible length before each. */
  const candidates: { at: number; shown: number; drop: boolean }[] = [];
  let shown = 0;
  for (const [at, token] of tokens.entries()) {
    if (token === " " && shown > 0) candidates.push({ at, shown, drop: true });
    else if (at > 0 && HAS_SPACELESS.test(token) && HAS_SPACELESS.test(tokens[at - 1] as string))
      candidates.push({ at, shown, drop: false });
    if (!isTag(token)) shown++;
  }
  const total = shown;
  const breaks: typeof candidates = [];
  for (let line = 1; line < Math.min(lines, MAX_LINES); line++) {
    const target = (total * line) / lines;
    const free = candidates.filter(
      (candidate) => candidate.shown > (breaks.at(-1)?.shown ?? 0) && candidate.shown < total - 1,
    );
    const nearest = free.reduce<(typeof candidates)[number] | null>(
      (best, candidate) =>
        best === null || Math.abs(candidate.shown - target) < Math.abs(best.shown - target) ? candidate : best,
      null,
    );
    if (nearest) breaks.push(nearest);
  }
  let from = 0;
  const parts: string[] = [];
  for (const { at, drop } of breaks) {
    parts.push(tokens.slice(from, at).join(""));
    from = drop ? at + 1 : at;
  }
  parts.push(tokens.slice(from).join(""));
  return parts.join(terminator);
}

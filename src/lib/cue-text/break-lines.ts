const SPACELESS = /[\p{scx=Han}\p{scx=Hira}\p{scx=Kana}\p{scx=Thai}\p{scx=Lao}\p{scx=Khmr}\p{scx=Mymr}]/u;
const TOKENS = /<[^>]*>|&[a-z#\d]{1,20};|[\s\S]/giu;
const WITHOUT_TAGS = /&[a-z#\d]{1,20};|[\s\S]/giu;

/** More than a player shows; what was made to be long takes no long time. */
const MAX_CHARACTERS = 5000;
const MAX_LINES = 20;

/** One line as up to `lines` of about the same length, broken at spaces, or anywhere in scripts that have none. */
export function breakLines(text: string, lines: number, terminator: string): string {
  if (lines <= 1 || text.length > MAX_CHARACTERS) return text;
  // Behind the last > there is no tag, and looking for its end at every < would take quadratic time.
  const end = text.lastIndexOf(">") + 1;
  const tokens = [...(text.slice(0, end).match(TOKENS) ?? []), ...(text.slice(end).match(WITHOUT_TAGS) ?? [])];
  const isTag = (token: string) => token.startsWith("<") && token.length > 1;
  /** Where a line can end, and how much is shown before. */
  const places: { at: number; shown: number; drop: boolean }[] = [];
  let shown = 0;
  for (const [at, token] of tokens.entries()) {
    if (token === " " && shown > 0) places.push({ at, shown, drop: true });
    else if (at > 0 && SPACELESS.test(token) && SPACELESS.test(tokens[at - 1] as string))
      places.push({ at, shown, drop: false });
    if (!isTag(token)) shown++;
  }
  const total = shown;
  const breaks: typeof places = [];
  for (let line = 1; line < Math.min(lines, MAX_LINES); line++) {
    const wanted = (total * line) / lines;
    const free = places.filter((place) => place.shown > (breaks.at(-1)?.shown ?? 0) && place.shown < total - 1);
    const nearest = free.reduce<(typeof places)[number] | null>(
      (best, place) => (best === null || Math.abs(place.shown - wanted) < Math.abs(best.shown - wanted) ? place : best),
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

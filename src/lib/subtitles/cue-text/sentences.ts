import { decodeEntities } from "../align/entities.ts";

/** A tag of the payload; it `opens` the tag that closes it, or `closes` the one that opened it. */
export type Tag = { kind: "tag"; raw: string; opens?: Tag; closes?: Tag };
/** Or a text with its entities decoded. */
export type Piece = Tag | { kind: "text"; raw: string; text: string };

/** The unit of translation: the lines of a cue that one speaker says, without surrounding markup. */
export type Sentence = { pieces: Piece[]; lines: number };
/** A payload in order: parts that are kept, and sentences. */
export type Part = string | Sentence;

const TOKENS = /<[^>]*>?|[^<\r\n]+|\r\n|\r|\n/g;
/** A line of a new speaker: it begins with a dash or a voice tag (WebVTT, 4.2.2), after any other markup. */
const NEW_SPEAKER = /^(?:<(?!v[.\s])[^>]*>|[ \t])*(?:[-–—‐]|<v[.\s])/;
const LOOK_AHEAD = 200;
/** Prefixes of a line that are not text. */
const DASH = /^[ \t]*(?:[-–—‐]+[ \t]*)?/;
const LETTER = /\p{L}/u;

/** Longer than any readable cue: data, or hostile. It is not translated. */
const MAX_CHARACTERS = 5000;

/** Splits a WebVTT payload (4.2.2) into parts. Joined, they give the payload again. */
export function partsOf(payload: string): Part[] {
  if (payload.length > MAX_CHARACTERS) return [payload];
  const parts: Part[] = [];
  let group: Piece[] = [];
  let lines = 1;
  const finish = () => {
    parts.push(...withoutEdges(mated(group), lines));
    group = [];
    lines = 1;
  };
  for (const match of payload.matchAll(TOKENS)) {
    const [raw] = match;
    if (!isBreak(raw)) group.push(raw.startsWith("<") ? { kind: "tag", raw } : textPiece(raw));
    else if (NEW_SPEAKER.test(payload.slice(match.index + raw.length, match.index + LOOK_AHEAD))) {
      finish();
      parts.push(raw);
    } else {
      group.push({ kind: "text", raw, text: " " });
      lines++;
    }
  }
  finish();
  return parts;
}

const textPiece = (raw: string): Piece => ({ kind: "text", raw, text: decodeEntities(raw) });

/** Pairs opening and closing tags. An unclosed tag, or a timestamp, has no pair. */
function mated(pieces: Piece[]): Piece[] {
  const open: { name: string; tag: Tag }[] = [];
  for (const piece of pieces) {
    if (piece.kind !== "tag") continue;
    const [, slash, name] = /^<(\/?)([a-z]+)/i.exec(piece.raw) ?? [];
    if (name === undefined) continue;
    if (slash === "") open.push({ name, tag: piece });
    else if (open.at(-1)?.name === name) {
      piece.closes = open.pop()?.tag as Tag;
      piece.closes.opens = piece;
    }
  }
  return pieces;
}

const isAlone = (piece: Piece) => piece.kind === "tag" && !piece.opens && !piece.closes;
const isBlank = (piece: Piece) => piece.kind === "text" && piece.text.trim() === "";
const isBreak = (raw: string) => raw === "\n" || raw === "\r\n" || raw === "\r";
const rawOf = (pieces: readonly Piece[]) => pieces.map(({ raw }) => raw).join("");

/** Tags around the whole, a leading dash and spaces need no translation; nor does text without letters. */
function withoutEdges(pieces: Piece[], lines: number, isFirst = true): Part[] {
  let from = 0;
  let to = pieces.length;
  for (let before = -1; before !== from - to && from < to; ) {
    before = from - to;
    const first = pieces[from] as Piece;
    const last = pieces[to - 1] as Piece;
    if (isBlank(first) || isAlone(first)) from++;
    else if (isBlank(last) || isAlone(last)) to--;
    else if (first.kind === "tag" && first.opens === last) {
      from++;
      to--;
    }
  }
  const inner = pieces.slice(from, to);
  const outer = [...pieces.slice(0, from), ...pieces.slice(to)];
  if (!inner.some((piece) => piece.kind === "text" && LETTER.test(piece.text))) return [rawOf(pieces)];
  const left = lines - outer.filter(({ raw }) => isBreak(raw)).length;
  const first = inner[0] as Piece;
  const head = first.kind === "text" ? (DASH.exec(first.raw)?.[0] ?? "") : "";
  if (head !== "") inner[0] = textPiece(first.raw.slice(head.length));
  const last = inner.at(-1) as Piece;
  const tail = last.kind === "text" ? last.raw.slice(last.raw.trimEnd().length) : "";
  if (tail !== "") inner[inner.length - 1] = textPiece(last.raw.slice(0, -tail.length));
  // After a dash there may be another tag around the whole.
  const middle: Part[] =
    isFirst && /\S/.test(head) ? withoutEdges(inner, left, false) : [{ pieces: inner, lines: left }];
  return [`${rawOf(pieces.slice(0, from))}${head}`, ...middle, `${tail}${rawOf(pieces.slice(to))}`];
}

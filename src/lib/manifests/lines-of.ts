import { DOCUMENT_LIMITS, requireAtMost } from "#lib/base";

/**
 * The lines of a playlist or storyboard without their terminators, LF or CRLF (RFC 8216, 4.1). Throws TooComplex for a
 * line that is too long.
 */
export function* linesOf(text: string): Generator<string, void> {
  for (let from = 0; from <= text.length; ) {
    const lineFeed = text.indexOf("\n", from);
    const end = lineFeed === -1 ? text.length : lineFeed;
    requireAtMost(end - from, DOCUMENT_LIMITS.lineCharacters, "characters in a line");
    const to = end > from && lineFeed !== -1 && text[end - 1] === "\r" ? end - 1 : end;
    yield text.slice(from, to);
    from = end + 1;
  }
}

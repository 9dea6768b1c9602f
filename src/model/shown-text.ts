/**
 * What must not reach a terminal, a log or a page unseen: control characters of both sets, separators of lines, and what
 * changes the order of what follows (Unicode Technical Report 36, 2.5; CVE-2021-42574).
 */
const UNSAFE = /[\p{Cc}\u061c\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;
const REPLACEMENT = "\ufffd";

/** Text of someone else as one line. Linear in time; has as many UTF-16 units as before. */
export const shownLine = (text: string): string => text.replaceAll(UNSAFE, REPLACEMENT);

/** The same of a text with lines and tabs, such as a log. */
export const shownLines = (text: string): string =>
  text.replaceAll(UNSAFE, (found) => (found === "\n" || found === "\t" ? found : REPLACEMENT));

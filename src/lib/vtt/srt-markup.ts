/** Kept, as WebVTT (4.2.2) knows them too. */
const KEPT = "b|i|u";
/**
 * What SubRip files hold beside text: tags that are kept, tags that only style and are dropped, line breaks, ASS
 * overrides in braces, and what WebVTT would take for markup. No part of a match can begin another, so it is linear.
 */
const MARKUP = new RegExp(
  [
    `<(?<close>/?)(?<kept>${KEPT})>`,
    "(?<dropped></?(?:font|span|s|strike)(?:\\s[^<>]*)?>)",
    "(?<lineBreak><br ?/?>)",
    "\\{\\\\(?<override>[^{}]*)\\}",
    "(?<entity>&(?:amp|lt|gt|nbsp|lrm|rlm|#\\d{1,7}|#x[0-9a-f]{1,6});)",
    "(?<special>[&<>])",
  ].join("|"),
  "gi",
);
const ESCAPES: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;" };

/** A SubRip text as a WebVTT payload: without blank lines and arrows, its tags closed. `top`: it belongs at the top. */
export function fromSrtMarkup(text: string): { text: string; top: boolean } {
  const open: string[] = [];
  let top = false;
  const close = (until: number) =>
    open
      .splice(until)
      .reverse()
      .map((tag) => `</${tag}>`)
      .join("");
  const marked = text.replaceAll(MARKUP, (...found) => {
    const part = found.at(-1) as Record<string, string | undefined>;
    if (part.kept !== undefined) {
      const tag = part.kept.toLowerCase();
      if (part.close === "") {
        // Twice as bold is no bolder, and a million open tags would take their time to close.
        if (open.includes(tag)) return "";
        open.push(tag);
        return `<${tag}>`;
      }
      const at = open.lastIndexOf(tag);
      return at === -1 ? "" : close(at);
    }
    if (part.override !== undefined) {
      top ||= /(?:^|\\)an[789]/i.test(part.override);
      return "";
    }
    if (part.lineBreak !== undefined) return "\n";
    if (part.dropped !== undefined) return "";
    return part.entity ?? ESCAPES[part.special as string] ?? "";
  });
  const lines = (marked + close(0)).split("\n").filter((line) => line.trim() !== "");
  return { text: lines.join("\n"), top };
}

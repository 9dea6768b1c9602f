/** Tags that WebVTT (4.2.2) also has; they are kept. */
const KEPT = "b|i|u";
const TAGS = /<\/?[biu]>/g;
/**
 * Markup in SubRip files: tags that are kept, tags that only style and are dropped, line breaks, ASS overrides in
 * braces, and characters that WebVTT would parse as markup. No part of a match can begin another, so matching is
 * linear.
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

/**
 * Converts a SubRip text to a WebVTT payload: without blank lines and arrows, with its tags closed, and lines for the `\N`
 * of ASS; empty when there are only tags. `top`: it is positioned at the top.
 */
export function fromSrtMarkup(text: string): { text: string; top: boolean } {
  const open: string[] = [];
  let top = false;
  const close = (until: number) =>
    open
      .splice(until)
      .reverse()
      .map((tag) => `</${tag}>`)
      .join("");
  const marked = text.replaceAll("\\N", "\n").replaceAll(MARKUP, (...found) => {
    const part = found.at(-1) as Record<string, string | undefined>;
    if (part.kept !== undefined) {
      const tag = part.kept.toLowerCase();
      if (part.close === "") {
        // Nested repetition of a tag has no effect, and closing a million open tags would take long.
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
  const payload = lines.join("\n");
  return { text: payload.replaceAll(TAGS, "").trim() === "" ? "" : payload, top };
}

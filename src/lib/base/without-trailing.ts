/**
 * `text` without trailing `character`s. A regular expression such as /=+$/ takes quadratic time.
 * @example
 * withoutTrailing("https://example.com//", "/") // => "https://example.com"
 */
export function withoutTrailing(text: string, character: string): string {
  let end = text.length;
  while (end > 0 && text[end - 1] === character) end--;
  return text.slice(0, end);
}

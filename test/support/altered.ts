/** A token with another character near its end; not the last one, of which base64 may ignore bits. */
export function altered(token: string): string {
  const at = token.length - 10;
  return token.slice(0, at) + (token[at] === "A" ? "B" : "A") + token.slice(at + 1);
}

const NAMED: Record<string, string> = {
  amp: "&",
  lt: "<",
  gt: ">",
  quot: '"',
  apos: "'",
  nbsp: "\u00a0",
  lrm: "\u200e",
  rlm: "\u200f",
};

/** Decodes the character references of WebVTT (§4.2.2) and the numeric ones of HTML. Anything else is unchanged. */
export const decodeEntities = (text: string): string =>
  text.includes("&")
    ? text.replace(/&(?:#(\d{1,7})|#[xX]([\da-fA-F]{1,6})|([a-zA-Z]{2,5}));/g, (whole, decimal, hex, name) => {
        if (name !== undefined) return NAMED[name] ?? whole;
        const code = decimal === undefined ? Number.parseInt(hex, 16) : Number(decimal);
        const isCharacter = code > 0 && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
        return isCharacter ? String.fromCodePoint(code) : whole;
      })
    : text;

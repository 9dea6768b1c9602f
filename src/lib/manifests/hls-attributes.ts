/** An attribute of a tag. `from` and `to` delimit the value in the line, without quotes. */
export type HlsAttribute = { name: string; value: string; isQuoted: boolean; from: number; to: number };

/**
 * The attributes of a tag's line (RFC 8216, 4.2) from `start`, after the colon. Malformed attributes are skipped up to
 * the next comma; an unclosed quote ends the list. Each character is read once.
 */
export function* hlsAttributes(line: string, start: number): Generator<HlsAttribute, void> {
  for (let at = start; at < line.length; ) {
    const from = skipBlanks(line, at);
    let equals = from;
    while (isNameCharacter(line.charCodeAt(equals))) equals++;
    if (equals === from || line[equals] !== "=") {
      at = endOfMalformed(line, equals) + 1;
      continue;
    }
    const name = line.slice(from, equals);
    if (line[equals + 1] === '"') {
      const close = line.indexOf('"', equals + 2);
      if (close === -1) return;
      yield { name, value: line.slice(equals + 2, close), isQuoted: true, from: equals + 2, to: close };
      at = endOfPart(line, close + 1) + 1;
    } else {
      const end = endOfPart(line, equals + 1);
      yield { name, value: line.slice(equals + 1, end), isQuoted: false, from: equals + 1, to: end };
      at = end + 1;
    }
  }
}

/**
 * The value of attribute `name`, or undefined.
 * @example
 * hlsAttribute('#EXT-X-MAP:URI="init.mp4"', "URI") // => "init.mp4"
 */
export function hlsAttribute(line: string, name: string): string | undefined {
  const colon = line.indexOf(":");
  if (colon === -1) return undefined;
  for (const attribute of hlsAttributes(line, colon + 1)) if (attribute.name === name) return attribute.value;
  return undefined;
}

/** The next comma outside quotes. */
function endOfMalformed(line: string, from: number): number {
  let isQuoted = false;
  for (let at = from; at < line.length; at++) {
    if (line[at] === '"') isQuoted = !isQuoted;
    else if (line[at] === "," && !isQuoted) return at;
  }
  return line.length;
}

function endOfPart(line: string, from: number): number {
  const comma = line.indexOf(",", from);
  return comma === -1 ? line.length : comma;
}

function skipBlanks(line: string, from: number): number {
  let at = from;
  while (line[at] === " " || line[at] === "\t") at++;
  return at;
}

/** A to Z, 0 to 9 and the hyphen. */
const isNameCharacter = (code: number) => (code >= 65 && code <= 90) || (code >= 48 && code <= 57) || code === 45;

import { DOCUMENT_LIMITS, requireAtMost } from "#lib/base";

/**
 * Malformed XML, or features of XML that are not supported; the message contains the position. `at` is the position in
 * UTF-16 code units where markup is malformed, else null.
 */
export class XmlFault extends Error {
  readonly at: number | null;

  constructor(message: string, at: number | null = null) {
    super(message);
    this.name = "XmlFault";
    this.at = at;
  }
}

/** `from` and `to` delimit the token in the text. */
export type XmlToken = { from: number; to: number } & (
  | { kind: "open"; name: string; attributes: ReadonlyMap<string, string>; isEmpty: boolean }
  | { kind: "close"; name: string }
  /** `isCdata`: a CDATA section with its marks. */
  | { kind: "text"; isCdata?: true }
);

const NONE: ReadonlyMap<string, string> = new Map();
const ENTITIES: Record<string, string> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" };
const LONGEST_ENTITY = 8;
export const CDATA_START = "<![CDATA[";
export const CDATA_END = "]]>";

/**
 * Tags and texts of an XML document in order, without comments and processing instructions. A document type, custom
 * entities and, unless `hasCdata`, CDATA are faults, so that nothing is expanded or fetched. Each character is read at
 * most twice. The content of the elements that `notRead` names is passed over up to their next end tag. Throws XmlFault and
 * TooComplex.
 */
export function* xmlTokens(
  text: string,
  { hasCdata = false, notRead }: { hasCdata?: boolean; notRead?: ReadonlySet<string> } = {},
): Generator<XmlToken, void> {
  for (let from = 0; from < text.length; ) {
    if (text[from] !== "<") {
      const to = endAt(text, "<", from);
      yield { kind: "text", from, to };
      from = to;
      continue;
    }
    const skipped = afterComment(text, from);
    if (skipped !== null) {
      from = skipped;
      continue;
    }
    if (hasCdata && text.startsWith(CDATA_START, from)) {
      const end = text.indexOf(CDATA_END, from + CDATA_START.length);
      if (end === -1) throw notTaken(from);
      const to = end + CDATA_END.length;
      yield { kind: "text", isCdata: true, from, to };
      from = to;
      continue;
    }
    const token = text[from + 1] === "/" ? closeAt(text, from) : openAt(text, from);
    yield token;
    const isPassedOver = notRead !== undefined && token.kind === "open" && !token.isEmpty && notRead.has(token.name);
    from = isPassedOver ? endAt(text, `</${token.name}`, token.to) : token.to;
  }
}

/** What XML 1.0 has no way to write (2.2). */
const FORBIDDEN = /[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu;

/**
 * A text without the characters that no XML document can contain, not even escaped.
 * @example
 * withoutForbidden("a\u0007b") // => "ab"
 */
export const withoutForbidden = (text: string): string => text.replaceAll(FORBIDDEN, "");

/**
 * Decodes the entities of text and attribute values. Throws XmlFault for an entity that XML 1.0 (4.6) does not
 * predefine.
 * @example
 * unescapeXml("Tom &amp; Jerry") // => "Tom & Jerry"
 */
export function unescapeXml(text: string): string {
  let from = text.indexOf("&");
  if (from === -1) return text;
  const pieces: string[] = [];
  let done = 0;
  for (; from !== -1; from = text.indexOf("&", done)) {
    const end = text.slice(from + 1, from + 2 + LONGEST_ENTITY).indexOf(";");
    if (end === -1) throw new XmlFault("An & is not part of an entity; write it as &amp;.");
    pieces.push(text.slice(done, from), characterOf(text.slice(from + 1, from + 1 + end)));
    done = from + end + 2;
  }
  pieces.push(text.slice(done));
  return pieces.join("");
}

function characterOf(entity: string): string {
  if (Object.hasOwn(ENTITIES, entity)) return ENTITIES[entity] as string;
  const [, hex, decimal] = /^#(?:x([0-9a-f]{1,6})|(\d{1,7}))$/i.exec(entity) ?? [];
  const code = hex === undefined ? Number(decimal) : Number.parseInt(hex, 16);
  if (!(code > 0 && code <= 0x10ffff)) throw new XmlFault(`The entity &${entity}; is unknown.`);
  return String.fromCodePoint(code);
}

/** The end of a comment or processing instruction at `from`, or null. */
function afterComment(text: string, from: number): number | null {
  const [start, end] = text.startsWith("<!--", from) ? ["<!--", "-->"] : ["<?", "?>"];
  if (!text.startsWith(start, from)) return null;
  const at = text.indexOf(end, from + start.length);
  if (at === -1) throw notTaken(from);
  return at + end.length;
}

function closeAt(text: string, from: number): XmlToken {
  const nameTo = nameEnd(text, from + 2);
  const to = skipSpace(text, nameTo);
  if (nameTo === from + 2 || text[to] !== ">") throw notTaken(from);
  return { kind: "close", name: text.slice(from + 2, nameTo), from, to: to + 1 };
}

function openAt(text: string, from: number): XmlToken {
  const nameTo = nameEnd(text, from + 1);
  if (nameTo === from + 1) throw notTaken(from);
  const name = text.slice(from + 1, nameTo);
  let attributes: Map<string, string> | undefined;
  for (let at = nameTo; ; ) {
    const next = skipSpace(text, at);
    const isEmpty = text[next] === "/";
    const end = isEmpty ? next + 1 : next;
    if (text[end] === ">") return { kind: "open", name, attributes: attributes ?? NONE, isEmpty, from, to: end + 1 };
    // Whitespace precedes each attribute.
    if (isEmpty || next === at) throw notTaken(from);
    const attribute = attributeAt(text, next);
    if (!attribute) throw notTaken(from);
    attributes ??= new Map();
    if (attributes.has(attribute.name)) throw new XmlFault(`The attribute ${attribute.name.slice(0, 50)} is repeated.`);
    requireAtMost(attributes.size + 1, DOCUMENT_LIMITS.xmlAttributes, "attributes in an element");
    attributes.set(attribute.name, unescapeXml(attribute.value));
    at = attribute.to;
  }
}

function attributeAt(text: string, from: number): { name: string; value: string; to: number } | null {
  const nameTo = nameEnd(text, from);
  const equals = skipSpace(text, nameTo);
  if (nameTo === from || text[equals] !== "=") return null;
  const open = skipSpace(text, equals + 1);
  const quote = text[open];
  if (quote !== '"' && quote !== "'") return null;
  const close = text.indexOf(quote, open + 1);
  if (close === -1) return null;
  requireAtMost(close - open - 1, DOCUMENT_LIMITS.xmlAttributeCharacters, "characters in an attribute");
  const value = text.slice(open + 1, close);
  return value.includes("<") ? null : { name: text.slice(from, nameTo), value, to: close + 1 };
}

/** Letters, digits and `_ : . -`; XML (2.3) allows more, which manifests do not use. */
function nameEnd(text: string, from: number): number {
  let at = from;
  while (isNameCharacter(text.charCodeAt(at))) at++;
  requireAtMost(at - from, DOCUMENT_LIMITS.xmlAttributeCharacters, "characters in a name");
  return at;
}

const isNameCharacter = (code: number) =>
  (code >= 97 && code <= 122) ||
  (code >= 65 && code <= 90) ||
  (code >= 48 && code <= 58) ||
  code === 95 ||
  code === 46 ||
  code === 45;

function skipSpace(text: string, from: number): number {
  let at = from;
  for (let code = text.charCodeAt(at); code === 32 || code === 10 || code === 13 || code === 9; )
    code = text.charCodeAt(++at);
  return at;
}

function endAt(text: string, character: string, from: number): number {
  const at = text.indexOf(character, from);
  return at === -1 ? text.length : at;
}

const notTaken = (at: number) =>
  new XmlFault(`Unsupported markup at character ${at}; expected an element, text or a comment.`, at);

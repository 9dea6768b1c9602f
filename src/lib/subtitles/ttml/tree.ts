import { DOCUMENT_LIMITS, requireAtMost, type Sliced } from "#lib/base";
import { CDATA_END, CDATA_START, unescapeXml, XmlFault, type XmlToken, xmlTokens } from "#lib/xml";

/**
 * An element of TTML. Names have the prefixes of the specification, whatever the document calls them: `p`,
 * `tts:origin`, `xml:lang`. Attributes and elements of other namespaces are left out.
 */
export type TtmlElement = {
  name: string;
  attributes: ReadonlyMap<string, string>;
  children: (TtmlElement | string)[];
  /** Line of the start tag, counted from 1. */
  line: number;
};

/** A document that is not well-formed, or no TTML; `line` is counted from 1. */
export class TtmlFault extends Error {
  readonly line: number;

  constructor(line: number, message: string) {
    super(message);
    this.name = "TtmlFault";
    this.line = line;
  }
}

/** TTML 1 and 2 (5.2), and the drafts of DFXP that are still in use. */
const TTML = /^http:\/\/www\.w3\.org\/(?:ns\/ttml|2006\/(?:04|10)\/ttaf1)(?:#(\w+))?$/;
const PREFIXES: Record<string, string> = {
  styling: "tts:",
  style: "tts:",
  parameter: "ttp:",
  metadata: "ttm:",
};
const SMPTE = /^http:\/\/www\.smpte-ra\.org\/schemas\/2052-1\/\d{4}\/smpte-tt$/;
/** Accepted without a declaration, as authors and players do. */
const USUAL = new Set(["tts", "ttp", "ttm", "smpte"]);

/** Namespaces that an element declares, in front of those of its parent. */
type Scope = { prefixes: ReadonlyMap<string, string | null>; parent: Scope | null };

/** The prefix that the specification gives a namespace, with its colon; null for another namespace. */
function usualPrefix(uri: string): string | null {
  if (SMPTE.test(uri)) return "smpte:";
  const ttml = TTML.exec(uri);
  if (!ttml) return null;
  return ttml[1] === undefined ? "" : (PREFIXES[ttml[1]] ?? "ttm:");
}

/** Undefined for a prefix that is not declared. */
function declaredPrefix(scope: Scope | null, prefix: string): string | null | undefined {
  for (let at = scope; at; at = at.parent) {
    const usual = at.prefixes.get(prefix);
    if (usual !== undefined) return usual;
  }
  return undefined;
}

/** The name with the prefix of the specification; null for another namespace. */
function ownName(scope: Scope | null, name: string, isAttribute: boolean): string | null {
  const colon = name.indexOf(":");
  const prefix = colon === -1 ? "" : name.slice(0, colon);
  const local = name.slice(colon + 1);
  if (prefix === "" && isAttribute) return local;
  if (prefix === "xml") return name;
  const usual = declaredPrefix(scope, prefix);
  if (usual === undefined) return prefix === "" ? local : USUAL.has(prefix) ? name : null;
  return usual === null ? null : usual + local;
}

function scopeOf(attributes: ReadonlyMap<string, string>, parent: Scope | null): Scope | null {
  let prefixes: Map<string, string | null> | undefined;
  for (const [name, value] of attributes) {
    if (!name.startsWith("xmlns")) continue;
    prefixes ??= new Map();
    if (name === "xmlns") prefixes.set("", usualPrefix(value));
    else if (name[5] === ":") prefixes.set(name.slice(6), usualPrefix(value));
  }
  return prefixes ? { prefixes, parent } : parent;
}

/** Counts lines up to increasing positions. CRLF, LF and CR end one. */
class LineCounter {
  line = 1;
  #at = 0;
  readonly #source: string;

  constructor(source: string) {
    this.#source = source;
  }

  moveTo(position: number): number {
    for (; this.#at < position; this.#at++) {
      const code = this.#source.charCodeAt(this.#at);
      if (code === 10 || (code === 13 && this.#source.charCodeAt(this.#at + 1) !== 10)) this.line++;
    }
    return this.line;
  }
}

const TOKENS_PER_SLICE = 200;

/** `element` is null within an element of another namespace. */
type Open = { name: string; element: TtmlElement | null; scope: Scope | null };

/**
 * The root of a TTML document, with texts and elements in order. Linear in time; document types and entities of one's
 * own are faults, so nothing is expanded or fetched. Throws TtmlFault, and TooComplex for too many or too deeply nested
 * elements.
 */
export function* readTree(source: string): Sliced<TtmlElement> {
  const counter = new LineCounter(source);
  let at = 0;
  try {
    const reader = new TreeReader(source, counter);
    let tokens = 0;
    for (const token of xmlTokens(source, { hasCdata: true })) {
      at = token.from;
      reader.read(token);
      at = token.to;
      if (++tokens % TOKENS_PER_SLICE === 0) yield;
    }
    return reader.end();
  } catch (error) {
    if (!(error instanceof XmlFault)) throw error;
    const place = error.at ?? at;
    const message = source.startsWith("<!DOCTYPE", place)
      ? "a document type is not supported; remove it"
      : error.at === null
        ? error.message.replace(/\.$/, "").replace(/^\w/, (letter) => letter.toLowerCase())
        : "the XML is malformed here; an element, text or a comment was expected";
    throw new TtmlFault(counter.moveTo(place), message);
  }
}

class TreeReader {
  readonly #source: string;
  readonly #counter: LineCounter;
  readonly #open: Open[] = [];
  #root: TtmlElement | null = null;
  #count = 0;

  constructor(source: string, counter: LineCounter) {
    this.#source = source;
    this.#counter = counter;
  }

  read(token: XmlToken): void {
    if (token.kind === "open") this.#begin(token);
    else if (token.kind === "close") {
      const { name } = this.#open.pop() ?? { name: null };
      if (name !== token.name) throw new XmlFault(`</${token.name.slice(0, 50)}> has no start tag`);
    } else {
      const content = this.#source.slice(token.from, token.to);
      const text = token.isCdata ? content.slice(CDATA_START.length, -CDATA_END.length) : unescapeXml(content);
      const parent = this.#open.at(-1);
      if (parent) parent.element?.children.push(text);
      else if (text.trim() !== "") throw new XmlFault("text is outside of the root element");
    }
  }

  end(): TtmlElement {
    const unclosed = this.#open.at(-1);
    if (unclosed) throw new XmlFault(`<${unclosed.name.slice(0, 50)}> has no end tag`);
    if (!this.#root) throw new XmlFault("the document has no root element");
    return this.#root;
  }

  #begin({ name, attributes, isEmpty, from }: XmlToken & { kind: "open" }): void {
    requireAtMost(this.#open.length + 1, DOCUMENT_LIMITS.xmlDepth, "elements inside each other");
    requireAtMost(++this.#count, DOCUMENT_LIMITS.xmlElements, "elements");
    const parent = this.#open.at(-1);
    const scope = scopeOf(attributes, parent?.scope ?? null);
    const own = parent?.element === null ? null : ownName(scope, name, false);
    const line = this.#counter.moveTo(from);
    const element =
      own === null ? null : { name: own, attributes: namedAttributes(attributes, scope), children: [], line };
    if (!parent) {
      if (this.#root) throw new XmlFault("the document has several root elements");
      if (element?.name !== "tt")
        throw new XmlFault(`the root element is ${name.slice(0, 50)}; expected tt of TTML (http://www.w3.org/ns/ttml)`);
      this.#root = element;
    } else if (element) parent.element?.children.push(element);
    if (!isEmpty) this.#open.push({ name, element, scope });
  }
}

function namedAttributes(attributes: ReadonlyMap<string, string>, scope: Scope | null): ReadonlyMap<string, string> {
  const named = new Map<string, string>();
  for (const [name, value] of attributes) {
    const own = ownName(scope, name, true);
    if (own !== null) named.set(own, value);
  }
  return named;
}

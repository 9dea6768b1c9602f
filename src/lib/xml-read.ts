import type { Sliced } from "./in-slices.ts";

export type XmlElement = { name: string; attributes: Map<string, string>; children: XmlElement[]; text: string };

/** What is no XML, or more of it than a manifest needs; the message says where. */
export class XmlFault extends Error {
  constructor(message: string) {
    super(message);
    this.name = "XmlFault";
  }
}

const EVERY_TAGS = 100;
const MAX_DEPTH = 40;
const TOKEN =
  /<!--[\s\S]*?-->|<\?[\s\S]*?\?>|<\/([\w:.-]+)\s*>|<([\w:.-]+)((?:\s+[\w:.-]+\s*=\s*(?:"[^"<]*"|'[^'<]*'))*)\s*(\/?)>|<|[^<]+/g;
const ATTRIBUTE = /([\w:.-]+)\s*=\s*(?:"([^"]*)"|'([^']*)')/g;
const ENTITIES: Record<string, string> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" };

/**
 * Elements, attributes and text of a small XML document, and nothing else: a document type, entities of one's own and
 * CDATA are faults, so that there is nothing to expand and nothing to fetch. Throws XmlFault.
 */
export function* readXml(source: string): Sliced<XmlElement> {
  const text = source.replace(/^\ufeff/, "");
  const top: XmlElement = { name: "", attributes: new Map(), children: [], text: "" };
  const open = [top];
  let count = 0;
  TOKEN.lastIndex = 0;
  for (const match of text.matchAll(TOKEN)) {
    if (++count % EVERY_TAGS === 0) yield;
    const [token, closed, name, list = "", empty] = match;
    const parent = open.at(-1) as XmlElement;
    const at = () => `at character ${match.index}`;
    if (closed !== undefined) {
      if (open.length === 1 || parent.name !== closed) throw new XmlFault(`</${closed}> ${at()} closes nothing.`);
      open.pop();
    } else if (name !== undefined) {
      if (open.length > MAX_DEPTH) throw new XmlFault("It is nested too deeply.");
      const element: XmlElement = { name, attributes: attributesOf(list), children: [], text: "" };
      parent.children.push(element);
      if (empty === "") open.push(element);
    } else if (token.startsWith("<!--") || token.startsWith("<?")) continue;
    else if (token === "<")
      throw new XmlFault(`What begins ${at()} is not taken: elements, text and comments alone are.`);
    else if (open.length > 1) parent.text += unescaped(token);
    else if (token.trim() !== "") throw new XmlFault(`There is text outside of all elements ${at()}.`);
  }
  const [root, ...others] = top.children;
  if (open.length > 1) throw new XmlFault(`<${(open.at(-1) as XmlElement).name}> is never closed.`);
  if (!root || others.length > 0) throw new XmlFault("It is not one element.");
  return root;
}

function attributesOf(list: string): Map<string, string> {
  const found = new Map<string, string>();
  for (const [, name = "", double, single] of list.matchAll(ATTRIBUTE)) {
    if (found.has(name)) throw new XmlFault(`The attribute ${name} stands twice.`);
    found.set(name, unescaped(double ?? single ?? ""));
  }
  return found;
}

const unescaped = (text: string): string =>
  text.replace(/&(#x[0-9a-f]{1,6}|#\d{1,7}|\w+)?;?/gi, (whole, entity: string | undefined) => {
    if (entity === undefined || !whole.endsWith(";")) throw new XmlFault("An & stands alone.");
    if (!entity.startsWith("#")) return ENTITIES[entity] ?? unknownEntity(entity);
    const code = /^#x/i.test(entity) ? Number.parseInt(entity.slice(2), 16) : Number(entity.slice(1));
    return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : unknownEntity(entity);
  });

const unknownEntity = (name: string): never => {
  throw new XmlFault(`The entity &${name}; is not known.`);
};

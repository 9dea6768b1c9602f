import { DOCUMENT_LIMITS, requireAtMost } from "#lib/base";
import { unescapeXml, XmlFault, xmlTokens } from "./tokens.ts";

export type XmlElement = {
  name: string;
  attributes: ReadonlyMap<string, string>;
  children: XmlElement[];
  text: string;
};

/**
 * Parses elements, attributes and text of a small XML document. Linear in time. Throws XmlFault, and TooComplex for too
 * many or too deeply nested elements.
 * @example
 * const { name, children } = readXml('<film><title lang="en">Tom &amp; Jerry</title></film>');
 * [name, children[0].name, children[0].attributes.get("lang"), children[0].text] // => ["film", "title", "en", "Tom & Jerry"]
 */
export function readXml(source: string): XmlElement {
  const text = source.replace(/^\ufeff/, "");
  const top: XmlElement = { name: "", attributes: new Map(), children: [], text: "" };
  const open = [top];
  let count = 0;
  for (const token of xmlTokens(text)) {
    const parent = open.at(-1) as XmlElement;
    if (token.kind === "close") {
      if (open.length === 1 || parent.name !== token.name)
        throw new XmlFault(`</${token.name.slice(0, 50)}> at character ${token.from} has no start tag.`);
      open.pop();
    } else if (token.kind === "open") {
      requireAtMost(open.length, DOCUMENT_LIMITS.xmlDepth, "elements inside each other");
      requireAtMost(++count, DOCUMENT_LIMITS.xmlElements, "elements");
      const element: XmlElement = { name: token.name, attributes: token.attributes, children: [], text: "" };
      parent.children.push(element);
      if (!token.isEmpty) open.push(element);
    } else {
      const content = text.slice(token.from, token.to);
      if (open.length > 1) parent.text += unescapeXml(content);
      else if (content.trim() !== "")
        throw new XmlFault(`Text outside of the root element at character ${token.from}.`);
    }
  }
  const [root, ...others] = top.children;
  if (open.length > 1) throw new XmlFault(`<${(open.at(-1) as XmlElement).name.slice(0, 50)}> has no end tag.`);
  if (!root || others.length > 0) throw new XmlFault("The document needs exactly one root element.");
  return root;
}

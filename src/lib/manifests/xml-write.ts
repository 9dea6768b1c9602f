import type { XmlElement } from "#lib/xml";

const ENTITIES: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
const escaped = (text: string) => text.replace(/[&<>"]/g, (character) => ENTITIES[character] ?? "");

/**
 * An XML document of elements that contain either elements or text, as in manifests: text next to elements is left out.
 * Recursion is bounded by the depth that `readXml` accepts.
 */
export const writeXml = (root: XmlElement): string =>
  ['<?xml version="1.0" encoding="UTF-8"?>', ...linesOf(root, ""), ""].join("\n");

function* linesOf({ name, attributes, children, text }: XmlElement, indent: string): Generator<string> {
  const open = [name, ...[...attributes].map(([key, value]) => `${key}="${escaped(value)}"`)].join(" ");
  if (children.length === 0) {
    const content = text.trim();
    yield content === "" ? `${indent}<${open}/>` : `${indent}<${open}>${escaped(content)}</${name}>`;
    return;
  }
  yield `${indent}<${open}>`;
  for (const child of children) yield* linesOf(child, `${indent}  `);
  yield `${indent}</${name}>`;
}

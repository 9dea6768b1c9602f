import { requireAtMost } from "#lib/base";
import type { TtmlElement } from "./tree.ts";

/** Attributes of TTML styling (TTML 2, 10.2) that have a counterpart in WebVTT. */
const INHERITED = ["tts:fontStyle", "tts:fontWeight", "tts:textDecoration", "tts:textAlign", "tts:visibility"] as const;
const OWN = ["tts:display", "tts:displayAlign", "tts:extent", "tts:origin", "tts:ruby", "tts:writingMode"] as const;
type StyleName = (typeof INHERITED)[number] | (typeof OWN)[number];
export type Style = Partial<Record<StyleName, string>>;

const NAMES: ReadonlySet<string> = new Set([...INHERITED, ...OWN]);
const isStyle = (name: string): name is StyleName => NAMES.has(name);

/** Styles that refer to each other. */
const MAX_CHAIN = 40;

/** The styles and regions in the head of a document. */
export class Stylesheet {
  readonly #elements = new Map<string, TtmlElement>();
  readonly #resolved = new Map<string, Style>();
  readonly #regions = new Map<string, Style>();
  readonly #pending = new Set<string>();

  constructor(head: TtmlElement | undefined) {
    const regions: TtmlElement[] = [];
    for (const part of elementsOf(head)) {
      if (part.name === "styling") for (const style of elementsOf(part)) this.#addStyle(style);
      if (part.name === "layout") regions.push(...elementsOf(part).filter(({ name }) => name === "region"));
    }
    for (const region of regions) {
      const id = region.attributes.get("xml:id");
      if (id === undefined) continue;
      const nested = elementsOf(region).filter(({ name }) => name === "style");
      this.#regions.set(id, Object.assign({}, ...nested.map((style) => this.specified(style)), this.specified(region)));
    }
  }

  /** The style of a region, empty for one that is not defined. */
  region(id: string): Style {
    return this.#regions.get(id) ?? {};
  }

  /** What an element says itself, and the styles that it refers to. Throws TooComplex. */
  specified({ attributes }: TtmlElement): Style {
    const style: Style = {};
    const references = attributes.get("style");
    if (references !== undefined)
      for (const id of references.split(/\s+/)) if (id !== "") Object.assign(style, this.#named(id));
    for (const [name, value] of attributes) if (isStyle(name)) style[name] = value.trim();
    return style;
  }

  #addStyle(style: TtmlElement): void {
    const id = style.attributes.get("xml:id");
    if (style.name === "style" && id !== undefined) this.#elements.set(id, style);
  }

  #named(id: string): Style {
    const known = this.#resolved.get(id);
    if (known) return known;
    const element = this.#elements.get(id);
    // A style that refers to itself adds nothing.
    if (!element || this.#pending.has(id)) return {};
    requireAtMost(this.#pending.size + 1, MAX_CHAIN, "styles that refer to each other in a row");
    this.#pending.add(id);
    const style = this.specified(element);
    this.#pending.delete(id);
    this.#resolved.set(id, style);
    return style;
  }
}

/** The part of a style that children have too. */
export function inherited(style: Style): Style {
  const kept: Style = {};
  for (const name of INHERITED) {
    const value = style[name];
    if (value !== undefined) kept[name] = value;
  }
  return kept;
}

/** WebVTT (4.2.2) tags of a style, the outer one first. */
export function tagsOf(style: Style): string[] {
  const tags: string[] = [];
  if (style["tts:fontWeight"] === "bold") tags.push("b");
  if (style["tts:fontStyle"] === "italic" || style["tts:fontStyle"] === "oblique") tags.push("i");
  if (/\bunderline\b/.test(style["tts:textDecoration"] ?? "")) tags.push("u");
  return tags;
}

/** The children of an element that are no texts. */
export const elementsOf = (parent: TtmlElement | undefined): TtmlElement[] =>
  parent?.children.filter((child): child is TtmlElement => typeof child !== "string") ?? [];

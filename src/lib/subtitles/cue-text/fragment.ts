import { decodeEntities } from "../align/entities.ts";
import type { Sentence, Tag } from "./sentences.ts";

/**
 * Escapes text for WebVTT (4.2.2): the result contains no tag, entity or arrow.
 * @example
 * escapeText("Tom & Jerry <3") // => "Tom &amp; Jerry &lt;3"
 */
export const escapeText = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

const oneLine = (text: string) => text.replaceAll(/\s+/g, " ").trim();

/** A sentence without tags as plain text, else null. */
export const plainOf = ({ pieces }: Sentence): string | null =>
  pieces.every(({ kind }) => kind === "text")
    ? oneLine(pieces.map((piece) => (piece.kind === "text" ? piece.text : "")).join(""))
    : null;

/**
 * A sentence as XML, which HTML parses alike: paired tags become `<g id="1">…</g>`, single ones `<x id="1"/>`, as in
 * XLIFF. Well-formed for any payload, because some services refuse anything else.
 */
export function fragmentOf({ pieces }: Sentence): string {
  let id = 0;
  const xml = pieces.map((piece) => {
    if (piece.kind === "text") return escapeText(piece.text);
    if (piece.closes) return "</g>";
    id++;
    return piece.opens ? `<g id="${id}">` : `<x id="${id}"/>`;
  });
  return oneLine(xml.join(""));
}

const TAG = /<(\/?)([gx])(?:\s+id\s*=\s*["']?(\d{1,6})["']?)?\s*(\/?)>/gi;

/**
 * Restores the tags of the sentence in a translated fragment; null unless all of them came back in order, with no
 * others.
 */
export function fromFragment(translated: string, { pieces }: Sentence): string | null {
  const tags = pieces.filter((piece) => piece.kind === "tag");
  const opening = tags.filter(({ closes }) => !closes);
  const open: Tag[] = [];
  let payload = "";
  let done = 0;
  let behind = 0;
  const text = (until: number) => {
    const between = translated.slice(behind, until);
    return between.includes("<") ? null : escapeText(decodeEntities(between));
  };
  for (const match of translated.matchAll(TAG)) {
    const [whole, slash, name = "", id, empty] = match;
    const before = text(match.index);
    if (before === null) return null;
    payload += before;
    behind = match.index + whole.length;
    const isGroup = name.toLowerCase() === "g";
    // HTML serializes an empty element with an end tag.
    if (slash && !isGroup) continue;
    const tag = slash ? open.pop()?.opens : opening[Number(id) - 1];
    if (tag === undefined || tag !== tags[done]) return null;
    if (!slash) {
      if (isGroup !== (tag.opens !== undefined) || (isGroup && empty)) return null;
      if (isGroup) open.push(tag);
    }
    payload += tag.raw;
    done++;
  }
  const rest = text(translated.length);
  return rest === null || done !== tags.length ? null : oneLine(payload + rest);
}

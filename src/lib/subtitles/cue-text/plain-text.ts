import { decodeEntities } from "../align/entities.ts";

/**
 * What is read of a WebVTT payload (4.2.2): without tags, entities decoded, in one line. Linear in time.
 * @example
 * plainText("<i>Tom</i> &amp; Jerry") // => "Tom & Jerry"
 */
export function plainText(payload: string): string {
  const texts: string[] = [];
  for (let at = 0; at < payload.length; ) {
    const tag = payload.indexOf("<", at);
    texts.push(decodeEntities(payload.slice(at, tag < 0 ? payload.length : tag)));
    if (tag < 0) break;
    const end = payload.indexOf(">", tag);
    // A tag that does not end contains the rest.
    if (end < 0) break;
    at = end + 1;
  }
  return texts.join("").split(/\s+/).filter(Boolean).join(" ");
}

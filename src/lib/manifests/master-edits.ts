import { hlsAttributes } from "./hls-attributes.ts";
import { linesOf } from "./lines-of.ts";

const KINDS = {
  "#EXT-X-STREAM-INF:": "variant",
  "#EXT-X-I-FRAME-STREAM-INF:": "frames",
  "#EXT-X-MEDIA:": "rendition",
} as const;
const TAG = /^#EXT-X-(?:(?:I-FRAME-)?STREAM-INF|MEDIA):/;

type Kind = (typeof KINDS)[keyof typeof KINDS] | "uri" | "other";

function kindOf(text: string): Kind {
  if (text === "") return "other";
  if (!text.startsWith("#")) return "uri";
  const [tag] = TAG.exec(text) ?? [];
  return tag === undefined ? "other" : KINDS[tag as keyof typeof KINDS];
}

/** A line of a master playlist, without its end. Its attributes are read once. */
export class MasterLine {
  readonly text: string;
  readonly kind: Kind;
  #attributes: Map<string, string> | undefined;

  constructor(text: string) {
    this.text = text;
    this.kind = kindOf(text);
  }

  /** The first attribute of this name, or undefined. */
  attribute(name: string): string | undefined {
    this.#attributes ??= attributesOf(this.text);
    return this.#attributes.get(name);
  }
}

function attributesOf(text: string): Map<string, string> {
  const all = new Map<string, string>();
  const colon = text.indexOf(":");
  if (colon === -1) return all;
  for (const { name, value } of hlsAttributes(text, colon + 1)) if (!all.has(name)) all.set(name, value);
  return all;
}

/** A change of a master playlist. It returns lines that it does not change as they are, and is linear in time. */
export type MasterEdit = (lines: readonly MasterLine[]) => readonly MasterLine[];

/**
 * Reads a master playlist once, applies edits in this order, and writes it once, with LF at the end of lines. A media playlist
 * has no line that the edits of variants and renditions change. Linear in time. Throws TooComplex.
 */
export function editMaster(playlist: string, edits: readonly MasterEdit[]): string {
  let lines: readonly MasterLine[] = [...linesOf(playlist)].map((line) => new MasterLine(line));
  for (const edit of edits) lines = edit(lines);
  return lines.map(({ text }) => text).join("\n");
}

/** Leaves out the variants, I-frame variants and renditions that `isLeftOut` accepts. */
export function withoutLines(lines: readonly MasterLine[], isLeftOut: (line: MasterLine) => boolean): MasterLine[] {
  let isUriLeftOut = false;
  return lines.filter((line) => {
    const { kind } = line;
    if (kind === "other") return true;
    if (kind === "uri") {
      const isKept = !isUriLeftOut;
      isUriLeftOut = false;
      return isKept;
    }
    const isGone = isLeftOut(line);
    // RFC 8216, 4.3.4.2: the URI of a variant is the next line.
    if (kind === "variant") isUriLeftOut = isGone;
    return !isGone;
  });
}

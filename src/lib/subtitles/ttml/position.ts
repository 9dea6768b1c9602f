import type { Style } from "./styles.ts";
import type { TtmlElement } from "./tree.ts";

type Size = { width: number; height: number };

/** What lengths of a document relate to (TTML 2, 10.3.1): the pixels and the cells of its root. */
export type Root = { pixels: Size | null; cells: Size };

export function rootOf({ attributes }: TtmlElement): Root {
  const [, width, height] = /^\s*(\d{1,6})px\s+(\d{1,6})px\s*$/.exec(attributes.get("tts:extent") ?? "") ?? [];
  const [, columns = "32", rows = "15"] =
    /^\s*(\d{1,4})\s+(\d{1,4})\s*$/.exec(attributes.get("ttp:cellResolution") ?? "") ?? [];
  return {
    pixels: Number(width) > 0 && Number(height) > 0 ? { width: Number(width), height: Number(height) } : null,
    cells: { width: Number(columns) || 32, height: Number(rows) || 15 },
  };
}

const LENGTH = /^([+-]?\d{1,6}(?:\.\d{1,9})?)(%|px|c|rw|rh)$/;

/** Two lengths in percent of the root, or null: `auto`, or lengths that relate to a font. */
function pair(value: string | undefined, { pixels, cells }: Root): [number, number] | null {
  const parts = value?.split(/\s+/) ?? [];
  if (parts.length !== 2) return null;
  const [x, y] = parts.map((part, index) => {
    const axis = index === 0 ? "width" : "height";
    const [, number, unit] = LENGTH.exec(part) ?? [];
    if (number === undefined) return null;
    if (unit === "px") return pixels && (Number(number) / pixels[axis]) * 100;
    return unit === "c" ? (Number(number) / cells[axis]) * 100 : Number(number);
  });
  return x == null || y == null ? null : [x, y];
}

const TOP_THIRD = 34;
const BOTTOM_THIRD = 66;
/** Off the middle of the video by less than this, text is centered. */
const NEARLY_CENTERED = 5;
const percent = (value: number) => Math.round(Math.min(100, Math.max(0, value)));

/**
 * The settings (WebVTT, 4.4) of a text in a region: at the top, in the middle or at the bottom, which is the default;
 * its alignment, and the edge or center that it is aligned to; vertical text. Empty for the bottom center.
 */
export function settingsOf(style: Style, root: Root): string {
  const vertical = { tbrl: "rl", tb: "rl", tblr: "lr" }[style["tts:writingMode"] ?? ""];
  if (vertical !== undefined) return `vertical:${vertical}`;
  const origin = pair(style["tts:origin"], root);
  const extent = pair(style["tts:extent"], root);
  const settings: string[] = [];
  if (origin || style["tts:displayAlign"] !== undefined) {
    const y = origin?.[1] ?? 0;
    const height = extent?.[1] ?? 100 - y;
    const align = style["tts:displayAlign"];
    const anchor = align === "after" ? y + height : align === "center" ? y + height / 2 : y;
    if (anchor <= TOP_THIRD) settings.push("line:0");
    else if (anchor < BOTTOM_THIRD) settings.push("line:50%");
  }
  const x = origin?.[0];
  const width = extent?.[0];
  const align = style["tts:textAlign"];
  if (align === "left" || align === "start") {
    if (x !== undefined) settings.push(`position:${percent(x)}%`);
    settings.push(`align:${align}`);
  } else if (align === "right" || align === "end") {
    if (x !== undefined && width !== undefined) settings.push(`position:${percent(x + width)}%`);
    settings.push(`align:${align}`);
  } else if (x !== undefined && width !== undefined && Math.abs(x + width / 2 - 50) > NEARLY_CENTERED)
    settings.push(`position:${percent(x + width / 2)}%`);
  return settings.join(" ");
}

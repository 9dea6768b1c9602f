import { pacer } from "../../lib/pace.ts";
import type { Below } from "./manifest.ts";

type Tile = { start: number; x: number; y: number; url?: string };

const CUE =
  /(?:(\d{2,}):)?([0-5]\d):([0-5]\d)\.(\d{3})[ \t]+-->[^\r\n]*\r?\n(\S+)#xywh=(?:pixel:)?(\d{1,6}),(\d{1,6}),(\d{1,6}),(\d{1,6})/g;

/**
 * A storyboard in the shape that Mux gives it, from the WebVTT that is stored. Addresses go through `address`; where there
 * are several sheets each tile names its own.
 */
export async function storyboardJson(
  vtt: string,
  { durationSeconds, address }: { durationSeconds: number; address: (uri: string) => string },
): Promise<string> {
  const pace = pacer();
  const tiles: Tile[] = [];
  let [url, width, height, several] = ["", 0, 0, false];
  for (const [, hours = "0", minutes, seconds, ms, uri = "", x, y, w, h] of vtt.matchAll(CUE)) {
    await pace();
    const own = address(uri);
    if (tiles.length === 0) [url, width, height] = [own, Number(w), Number(h)];
    several ||= own !== url;
    const start = Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds) + Number(ms) / 1000;
    tiles.push({ start, x: Number(x), y: Number(y), url: own });
  }
  if (!several) for (const tile of tiles) delete tile.url;
  return JSON.stringify({ url, tile_width: width, tile_height: height, duration: durationSeconds, tiles });
}

/** Whole addresses: JSON has no base of its own. `root` is the asset's, with the token that leads on. */
export const sheetAddress =
  (root: string, { folder }: Pick<Below, "folder">) =>
  (uri: string) =>
    /^([a-z][a-z0-9+.-]*:|\/)/i.test(uri) ? uri : new URL(folder + uri, root).href;

import { ownUrl } from "#web/console/own-url.ts";
import type { Playback } from "#web/console/types.ts";

export type Tile = { start: number; x: number; y: number; url: string };
export type Storyboard = { width: number; height: number; tiles: Tile[] };

/** Images of the timeline; null when the video has none, or storage delivers them to others only. */
export async function loadStoryboard({ storyboard_url }: Playback): Promise<Storyboard | null> {
  if (storyboard_url === null) return null;
  const url = ownUrl(storyboard_url, "/media/");
  url.pathname = url.pathname.replace(/storyboard\.vtt$/, "storyboard.json");
  const response = await fetch(url).catch(() => null);
  if (!response?.ok) return null;
  const board = await response.json();
  if (!board.tile_width || !board.tile_height) return null;
  const tiles = board.tiles.map((tile: Partial<Tile>) => ({
    ...tile,
    url: ownUrl(tile.url ?? board.url, "/media/").href,
  }));
  return { width: board.tile_width, height: board.tile_height, tiles };
}

/** `count` tiles, evenly distributed; with fewer tiles some repeat. */
export const tilesOf = ({ tiles }: Storyboard, count: number): Tile[] =>
  Array.from(
    { length: tiles.length && count },
    (_, index) => tiles[Math.floor((index * tiles.length) / count)] as Tile,
  );

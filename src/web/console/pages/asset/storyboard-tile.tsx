import type { Storyboard, Tile } from "./storyboard.ts";

/** One image of a sheet, at its own size. */
export function StoryboardTile({ storyboard, tile }: { storyboard: Storyboard; tile: Tile }) {
  return (
    <span
      class="tile"
      style={{
        width: `${storyboard.width}px`,
        height: `${storyboard.height}px`,
        backgroundImage: `url("${tile.url}")`,
        backgroundPosition: `${-tile.x}px ${-tile.y}px`,
      }}
    />
  );
}

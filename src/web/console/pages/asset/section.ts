import type { Asset, Playback } from "#web/console/types.ts";
import type { PlayerFrame } from "./player-frame.ts";

/** What each section of the page receives. */
export type SectionProps = {
  asset: Asset;
  /** Null while the asset cannot be played, or this session may not play it. */
  playback: Playback | null;
  player: PlayerFrame;
  /** Shows what was changed in the player. */
  reloadPlayer(): void;
  onChange(asset: Asset): void;
};

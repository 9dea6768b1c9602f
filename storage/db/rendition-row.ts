import type { HdrFormat } from "#lib/codecs";

/** A published rendition. Bitrates in bit/s. */
export type RenditionRow = {
  name: string;
  width: number | null;
  height: number | null;
  bandwidth: number;
  average_bandwidth?: number | null;
  codecs: string;
  frame_rate?: number | null;
  /** Absent and null: standard dynamic range. */
  hdr?: HdrFormat | null;
  /** With its init segment; unknown for media that were encoded elsewhere, and of clips. */
  bytes?: number | null;
  /** Estimated quality, 0 to 100; only of profiles that choose the rungs for each source. */
  score?: number | null;
  playlist_path: string;
};

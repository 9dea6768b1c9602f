import type { VideoTrack } from "./probe.ts";

const ROTATIONS = {
  0: [],
  90: ["transpose=clock"],
  180: ["transpose=clock", "transpose=clock"],
  270: ["transpose=cclock"],
};

/** Filters that rotate and mirror a track as its display matrix says. */
export const orientationFilters = ({ isMirrored, rotation }: Pick<VideoTrack, "isMirrored" | "rotation">): string[] => [
  ...(isMirrored ? ["hflip"] : []),
  ...ROTATIONS[rotation],
];

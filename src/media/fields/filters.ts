import type { VideoTrack } from "../probe.ts";

/** One frame for two fields, so that the rate stays that of the source; nothing for progressive video. */
export function deinterlacingFilters({
  isInterlaced,
  fieldOrder,
}: Pick<VideoTrack, "isInterlaced" | "fieldOrder">): string[] {
  if (!isInterlaced) return [];
  return [`bwdif=mode=send_frame:${fieldOrder === "flagged" ? "deint=interlaced" : `parity=${fieldOrder}:deint=all`}`];
}

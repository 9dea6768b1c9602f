import type { VideoTrack } from "../probe.ts";

type Fields = Pick<VideoTrack, "isInterlaced" | "fieldOrder">;

/** One frame for two fields, so that the rate stays that of the source; nothing for progressive video. */
export function deinterlacingFilters({ isInterlaced, fieldOrder }: Fields): string[] {
  if (!isInterlaced) return [];
  if (fieldOrder === "separate") return [...WOVEN, "bwdif=mode=send_frame:parity=tff:deint=all"];
  return [`bwdif=mode=send_frame:${fieldOrder === "flagged" ? "deint=interlaced" : `parity=${fieldOrder}:deint=all`}`];
}

/** Fields become frames: each top field with the one after it. All fields have one size, because their buffers do. */
const WOVEN = ["select='gt(selected_n,0)+eq(interlace_type,TOPFIRST)'", "tinterlace=mode=merge"];

import type { RefusalReason } from "#lib/publishing";
import { onStatus } from "./commands.ts";

/**
 * OBS shows the descriptions of Publish.BadName, Denied and Rejected to the user, ffmpeg those of any error. They begin
 * with what is wrong and end with what to do.
 */
const REFUSALS: Record<RefusalReason, [code: string, description: string]> = {
  refused: [
    "NetStream.Publish.Denied",
    "The channel or its stream key is wrong. Use <channel>?key=<key> as stream key, and copy the key again.",
  ],
  taken: [
    "NetStream.Publish.BadName",
    "Another publisher is sending to this channel. Stop it first, or allow takeover for the channel.",
  ],
  limit: [
    "NetStream.Publish.Denied",
    "The plan's limit of concurrent live streams is reached. End another stream, or change to a larger plan.",
  ],
  throttled: [
    "NetStream.Publish.Denied",
    "Too many wrong stream keys were sent from this address. Copy the key again, and try again in a minute.",
  ],
  unavailable: ["NetStream.Publish.Denied", "The server cannot accept a stream at this time. Try again in a minute."],
};

/** What the publisher reads. */
export const refusalText = (reason: RefusalReason): string => REFUSALS[reason][1];

export const refusedStatus = (reason: RefusalReason) => onStatus("error", ...REFUSALS[reason]);

export const rejectedStatus = (description: string) => onStatus("error", "NetStream.Publish.Rejected", description);

export const startedStatus = () => onStatus("status", "NetStream.Publish.Start", "The stream is live.");

export const unpublishedStatus = () => onStatus("status", "NetStream.Unpublish.Success", "The stream has ended.");

export const playRefusedStatus = () =>
  onStatus("error", "NetStream.Play.Failed", "This server only receives streams over RTMP. Play the channel over HLS.");

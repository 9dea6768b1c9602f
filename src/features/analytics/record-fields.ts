import * as v from "valibot";
import { Time } from "#protocol/fields.ts";

/** Fields that several schemas share, each with its description. */

export const ErrorCount = v.pipe(v.number(), v.description("Number of playback errors"));
export const OccurredAt = v.pipe(Time, v.description("Time of the event by the client's clock"));
export const PlayCountField = v.pipe(v.number(), v.description("Number of plays"));
export const PositionSeconds = v.pipe(v.number(), v.description("Position in the video in seconds"));
export const StartupMs = v.pipe(v.number(), v.description("Milliseconds from the viewer's play to the first frame"));
export const ViewersField = v.pipe(v.number(), v.description("Number of viewers"));
export const WatchedSeconds = v.pipe(v.number(), v.description("Seconds watched since the last event"));

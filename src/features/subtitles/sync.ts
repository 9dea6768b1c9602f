import * as v from "valibot";
import type { App } from "#app.ts";
import { HttpError } from "#lib/base";
import type { SyncedText } from "#lib/subtitles";
import { parseDocument } from "#platform/parsing/parse-document.ts";
import type { SubtitleRow } from "#storage/db/schema.ts";
import { subtitleContent } from "./content.ts";

export const Sync = v.object({
  reference_track_id: v.pipe(v.number(), v.description("Id of the subtitle whose timing was used")),
  strategy: v.pipe(v.picklist(["piecewise", "global_offset"]), v.description("How the times were computed")),
  match_ratio: v.pipe(v.number(), v.description("Share of the cues that match the reference: 0 to 1")),
  anchor_count: v.pipe(v.number(), v.description("Number of cues that were matched")),
  min_offset_seconds: v.pipe(v.number(), v.description("Smallest shift of a cue in seconds; positive is later")),
  max_offset_seconds: v.pipe(v.number(), v.description("The largest shift of a cue in seconds")),
});

/**
 * The reference track: the named one, else the newest automatic one, else the default one; ready, and never the track
 * itself. Throws 422 `sync_no_reference`, also for a track of another asset.
 */
export function referenceFor(track: SubtitleRow, tracks: readonly SubtitleRow[], named?: number | null): SubtitleRow {
  const others = tracks.filter(({ id, status }) => id !== track.id && status === "ready");
  const youngest = others
    .filter(({ source }) => source === "auto")
    .sort((a, b) => b.createdAt - a.createdAt || b.id - a.id)[0];
  const reference =
    named == null ? (youngest ?? others.find(({ isDefault }) => isDefault)) : others.find(({ id }) => id === named);
  if (reference) return reference;
  throw new HttpError(
    422,
    "sync_no_reference",
    named == null
      ? "There is no other automatic or default subtitle; set reference_track_id."
      : "reference_track_id: must be another track of this asset that is ready.",
  );
}

/**
 * The track's text with the reference's times, and details of the match. Throws 422 `sync_low_overlap`,
 * `document_too_complex`.
 */
export async function syncedText(app: App, track: SubtitleRow, reference: SubtitleRow, signal: AbortSignal) {
  const texts = { track: await subtitleContent(app, track), reference: await subtitleContent(app, reference) };
  const alignment = await parseDocument(app, "syncTexts", texts, { tenantId: track.tenantId, signal });
  if (!alignment.moved) return tooLittle(alignment);
  const { strategy, text, minOffsetMs, maxOffsetMs } = alignment.moved;
  const sync: v.InferOutput<typeof Sync> = {
    reference_track_id: reference.id,
    strategy,
    match_ratio: rounded(alignment.matchRatio),
    anchor_count: alignment.anchorCount,
    min_offset_seconds: minOffsetMs / 1000,
    max_offset_seconds: maxOffsetMs / 1000,
  };
  return { text, sync };
}

/** Rounded down, so that it never shows a limit that was not reached. */
const rounded = (ratio: number) => Math.floor(ratio * 10_000) / 10_000;

function tooLittle({ matchRatio, anchorCount }: SyncedText): never {
  throw new HttpError(
    422,
    "sync_low_overlap",
    `The two subtitles have too little in common: ${anchorCount} matching cues, ${Math.round(matchRatio * 100)} % of the track. Are they in the same language?`,
  );
}

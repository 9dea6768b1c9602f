import * as v from "valibot";
import type { SubtitleRow } from "../../../storage/db/schema.ts";
import type { App } from "../../app.ts";
import type { SyncedText } from "../../lib/align/sync-texts.ts";
import { HttpError } from "../../lib/errors.ts";
import { parseDocument } from "../../parsing/parse-document.ts";
import { subtitleContent } from "./content.ts";

export const Sync = v.object({
  reference_track_id: v.number(),
  strategy: v.picklist(["piecewise", "global_offset"]),
  match_ratio: v.pipe(v.number(), v.description("The share of the track's cues that the reference has, too: 0 to 1")),
  anchor_count: v.number(),
  min_offset_seconds: v.pipe(v.number(), v.description("The least move of a cue; positive is later")),
  max_offset_seconds: v.number(),
});

/**
 * The track to go by: the named one, else the youngest that was made automatically, else the default one; ready, and
 * never the track itself. 422 `sync_no_reference`, for what is another asset's just as for what never was.
 */
export function referenceFor(track: SubtitleRow, tracks: readonly SubtitleRow[], named?: number | null): SubtitleRow {
  const others = tracks.filter(({ id, status }) => id !== track.id && status === "ready");
  const youngest = others
    .filter(({ source }) => source === "auto")
    .sort((a, b) => b.createdAt - a.createdAt || b.id - a.id)[0];
  const found =
    named == null ? (youngest ?? others.find(({ isDefault }) => isDefault)) : others.find(({ id }) => id === named);
  if (found) return found;
  throw new HttpError(
    422,
    "sync_no_reference",
    named == null
      ? "There is no automatic and no default track beside this one; name another in reference_track_id."
      : "reference_track_id: must be another track of this asset that is ready.",
  );
}

/**
 * What the track says with the reference's times, and how that was found. 422 `sync_low_overlap`,
 * `document_too_complex`.
 */
export async function syncedText(app: App, track: SubtitleRow, reference: SubtitleRow, signal: AbortSignal) {
  const texts = { track: await subtitleContent(app, track), reference: await subtitleContent(app, reference) };
  const found = await parseDocument(app, "syncTexts", texts, { tenantId: track.tenantId, signal });
  if (!found.moved) return tooLittle(found);
  const { strategy, text, minOffsetMs, maxOffsetMs } = found.moved;
  const sync: v.InferOutput<typeof Sync> = {
    reference_track_id: reference.id,
    strategy,
    match_ratio: rounded(found.matchRatio),
    anchor_count: found.anchorCount,
    min_offset_seconds: minOffsetMs / 1000,
    max_offset_seconds: maxOffsetMs / 1000,
  };
  return { text, sync };
}

/** Never up to a limit that it did not reach. */
const rounded = (ratio: number) => Math.floor(ratio * 10_000) / 10_000;

function tooLittle({ matchRatio, anchorCount }: SyncedText): never {
  throw new HttpError(
    422,
    "sync_low_overlap",
    `The texts of the two tracks have too little in common: ${anchorCount} matching cues, ${Math.round(matchRatio * 100)} % of the track. Are they in the same language?`,
  );
}

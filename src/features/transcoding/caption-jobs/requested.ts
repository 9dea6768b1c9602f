import type { App } from "#app.ts";
import { subtitlesOf } from "#features/subtitles/queries.ts";
import { HttpError } from "#lib/base";
import type { Db } from "#storage/db/open.ts";
import type { AssetRow, JobRow } from "#storage/db/schema.ts";
import { generateCaptions } from "./generate.ts";
import { type CaptionErrors, setCaptionErrors } from "./missing.ts";

type Requesting = { asset: AssetRow; job: JobRow; errors: CaptionErrors | null };
type Wanted = { languages: readonly string[]; labels: ReadonlyMap<string, string> };

/**
 * Queues the captions that an upload, or a channel for its recordings, requests, as `generate` does, for an asset that is ready. In the
 * transaction of the completion of `job`; `errors`: why other captions are missing. What is there in a language stays. Returns the job,
 * with the reasons for captions that cannot be queued.
 */
export async function queueRequested(
  tx: Db,
  app: App,
  { asset, job, errors }: Requesting,
  { languages, labels }: Wanted,
): Promise<JobRow> {
  const refused: CaptionErrors = {};
  const tracks = new Map((await subtitlesOf(tx, asset.id)).map((track) => [track.language, track]));
  for (const language of languages) {
    const track = tracks.get(language);
    if (track && (track.source !== "auto" || track.status === "ready")) continue;
    const label = track?.label ?? labels.get(language);
    const generation = { language, translateTo: [], requestedBy: job.id, ...(label !== undefined && { label }) };
    try {
      await generateCaptions(tx, app, asset, generation);
    } catch (error) {
      if (!(error instanceof HttpError)) throw error;
      refused[language] = error.message;
    }
  }
  return Object.keys(refused).length === 0 ? job : setCaptionErrors(tx, job, { ...errors, ...refused });
}

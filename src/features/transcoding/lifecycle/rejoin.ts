import { eq } from "drizzle-orm";
import type { Db } from "#storage/db/open.ts";
import { type AssetRow, assets, type JobRow } from "#storage/db/schema.ts";
import { partFault } from "../joined-part.ts";

/** Whether the media of an asset that was joined can be joined again; `reason` is a clause. */
export type Rejoin = { can: "now" } | { can: "later" | "never"; reason: string };

/**
 * Whether missing media of an asset can be written again from the parts of its join. Null for an asset that its last job did
 * not join with others, or that was trimmed since: its texts fit to the trimmed media only. `lost` are the keys of missing
 * objects.
 */
export async function rejoinOf(
  db: Db,
  asset: AssetRow,
  { job, lost }: { job: JobRow | undefined; lost: ReadonlySet<string> },
): Promise<Rejoin | null> {
  if (!job?.joined || asset.sharedMedia !== null) return null;
  const gone: number[] = [];
  for (const id of new Set(job.joined.map(({ assetId }) => assetId))) {
    const part = await db.select().from(assets).where(eq(assets.id, id)).get();
    const fault = part ? partFault(part) : null;
    const isLost = part?.manifestPath != null && lost.has(part.manifestPath);
    if (part && fault === null && !isLost) continue;
    if (part?.playbackStatus === "processing" || (part?.playbackStatus === "ready" && part.encoding === "partial"))
      return { can: "later", reason: `its part, asset ${id}, is being encoded` };
    gone.push(id);
  }
  if (gone.length === 0) return { can: "now" };
  // The recording of a live stream, of which the job writes the storyboard.
  if (job.joined.every(({ assetId }) => assetId === asset.id)) return null;
  const [what, is] = gone.length === 1 ? ["asset", "is"] : ["assets", "are"];
  return { can: "never", reason: `of its parts ${what} ${gone.join(", ")} ${is} not playable any more` };
}

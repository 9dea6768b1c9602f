import type { App } from "#app.ts";
import { PARTS_VERSION } from "#protocol/speech.ts";
import { claimPart, jobOfPart, nextPart, partOfKey } from "../caption-parts/queue.ts";
import type { Claimant } from "../lease.ts";
import type { Capabilities } from "../requirements.ts";
import { captionContract, partContract } from "./contract.ts";
import { availableSince, captionsOfKey, claimCaptions, nextCaptions, type Wanted } from "./queue.ts";

/** A worker takes work from two queues: jobs, and parts of jobs. */

type Takes = { isPreceded: boolean; capabilities: Capabilities };

const wantedBy = (app: App, { isPreceded, capabilities }: Takes): Wanted => ({
  since: availableSince(app, isPreceded),
  takesParts: capabilities.captions >= PARTS_VERSION,
});

/** Whether a job or a part waits for a worker; while encodes precede them, only one that has waited long. */
export async function hasQueuedSpeech(app: App, takes: Takes): Promise<boolean> {
  const now = app.clock.now();
  const wanted = wantedBy(app, takes);
  if ((await nextCaptions(app.db, now, wanted)) !== undefined) return true;
  return wanted.takesParts && (await nextPart(app.db, now, wanted.since)) !== undefined;
}

/**
 * The contract of the job or the part that is next, or of what this key has leased already. Null: there is none. Throws 409
 * `stale_lease` when the lease of the key has ended.
 */
export async function claimSpeech(
  app: App,
  { key, workerId, ...takes }: Claimant & Takes,
  options: { sharesDisk: boolean; lane: string },
) {
  const wanted = wantedBy(app, takes);
  const claimJob = async () => {
    const job = await claimCaptions(app, { key, workerId, ...wanted });
    return job && captionContract(app, job, { ...options, takesParts: wanted.takesParts });
  };
  if (!wanted.takesParts) return claimJob();
  const claimOfPart = async () => {
    const part = await claimPart(app, { key, workerId, since: wanted.since });
    return part && partContract(app, part, await jobOfPart(app.db, part.row), options);
  };
  const claims = (await isPartFirst(app, key, wanted)) ? [claimOfPart, claimJob] : [claimJob, claimOfPart];
  for (const claim of claims) {
    const contract = await claim();
    if (contract) return contract;
  }
  return null;
}

/** What this key has leased, else the lower position in the fair queue. */
async function isPartFirst(app: App, key: string, wanted: Wanted): Promise<boolean> {
  if (await partOfKey(app.db, key)) return true;
  if (await captionsOfKey(app.db, key)) return false;
  const now = app.clock.now();
  const part = await nextPart(app.db, now, wanted.since);
  const job = part && (await nextCaptions(app.db, now, wanted));
  return part !== undefined && (!job || part.queuePosition < job.queuePosition);
}

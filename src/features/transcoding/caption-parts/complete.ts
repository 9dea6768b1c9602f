import { promisify } from "node:util";
import { deflate, inflate } from "node:zlib";
import { and, eq, gte, ne, sql } from "drizzle-orm";
import type { App } from "#app.ts";
import { canonicalLanguage, invalid, pacer } from "#lib/base";
import { MAX_PART_BYTES, PART_OVERLAP_MS, type PartPage, type PartSpeech } from "#protocol/speech.ts";
import { afterCommit } from "#storage/db/after-commit.ts";
import type { Db } from "#storage/db/open.ts";
import { type CaptionJobRow, type CaptionPartRow, captionJobs, captionParts } from "#storage/db/schema.ts";
import { UNDETERMINED } from "../caption-jobs/complete.ts";
import { NO_LEASE } from "../side-lease.ts";
import { workerWaker } from "../wake.ts";
import { queueWaiting } from "./divide.ts";
import { jobOfPart, moveJob } from "./queue.ts";

/** How speech is stored until it is joined. */
export type StoredSpeech = { speech: Buffer; detected: string | null };

const deflated = promisify(deflate);
const inflated = promisify<Buffer, { maxOutputLength: number }, Buffer>(inflate);

/** The speech of a part for `completePart`; deflated by another thread. */
export async function storedSpeech(speech: PartSpeech): Promise<StoredSpeech> {
  const tag = speech.utterances.length > 0 && speech.language !== null ? canonicalLanguage(speech.language) : null;
  return { speech: await deflated(JSON.stringify(speech)), detected: tag === UNDETERMINED ? null : tag };
}

/** Engines end an utterance a little later than the audio. */
const SLACK_MS = 1000;

/** Throws 422 for utterances that a part and what is recognized around it cannot have. */
export function requireWithin({ startMs, endMs }: CaptionPartRow, { utterances }: PartSpeech): void {
  const margin = PART_OVERLAP_MS + SLACK_MS;
  const isWithin = utterances.every(({ start_ms, end_ms }) => start_ms >= startMs - margin && end_ms <= endMs + margin);
  if (!isWithin) invalid("speech.utterances", "must be within the part, and at most 2 s around it");
}

/** Ends a part whose lease was read in the same transaction. After the last one the job is queued, to join them. */
export async function completePart(
  tx: Db,
  app: App,
  part: CaptionPartRow,
  { speech, detected }: StoredSpeech,
): Promise<CaptionJobRow> {
  const now = app.clock.now();
  await tx
    .update(captionParts)
    .set({ ...NO_LEASE, status: "completed", workerId: null, progress: 100, speech, detected, updatedAt: now })
    .where(eq(captionParts.id, part.id));
  const job = await jobOfPart(tx, part);
  await queueWaiting(tx, app, job);
  await moveJob(tx, job.id);
  const isOpen = await tx
    .select({ id: captionParts.id })
    .from(captionParts)
    .where(and(eq(captionParts.jobId, job.id), ne(captionParts.status, "completed")))
    .limit(1)
    .get();
  if (!isOpen) {
    const queued = { status: "queued", stage: null, availableAt: now } as const;
    await tx.update(captionJobs).set(queued).where(eq(captionJobs.id, job.id));
  }
  afterCommit(tx, workerWaker(app));
  return jobOfPart(tx, part);
}

/** Parts of a page, whose JSON has at most as many times MAX_PART_BYTES; usually a tenth. */
const PAGE = 8;

/** What was recognized in the parts of a job from `from` on, and the number of the next one. */
export async function partsFrom(
  db: Db,
  { id }: CaptionJobRow,
  from: number,
): Promise<{ parts: PartPage["parts"]; next: number | null }> {
  const rows = await db
    .select()
    .from(captionParts)
    .where(and(eq(captionParts.jobId, id), gte(captionParts.number, from)))
    .orderBy(sql`${captionParts.number}`)
    .limit(PAGE);
  const parts: PartPage["parts"] = [];
  const pace = pacer();
  for (const { startMs, endMs, speech } of rows) {
    if (speech === null) continue;
    await pace();
    parts.push({ start_ms: startMs, end_ms: endMs, ...(await readSpeech(speech)) });
  }
  const last = rows.at(-1);
  return { parts, next: rows.length < PAGE || !last ? null : last.number + 1 };
}

/** Inflated by another thread. */
const readSpeech = async (speech: Buffer): Promise<PartSpeech> =>
  JSON.parse((await inflated(speech, { maxOutputLength: 2 * MAX_PART_BYTES })).toString("utf8"));

import { eq } from "drizzle-orm";
import type { Db } from "#storage/db/open.ts";
import { type CaptionJobRow, type JobRow, transcodingJobs } from "#storage/db/schema.ts";

/** Why captions that an upload or a channel requested are missing, by language. */
export type CaptionErrors = Record<string, string>;

/** Why there are none where nothing can recognize speech. */
export const NO_TRANSCRIBER = "Neither this server nor a worker has a transcriber.";

/** Has the transcoding job that requested captions, if one did, show why they are missing. */
export async function reportMissing(
  tx: Db,
  { transcodingJobId, language }: CaptionJobRow,
  message: string,
): Promise<void> {
  if (transcodingJobId === null || language === null) return;
  const job = await tx.select().from(transcodingJobs).where(eq(transcodingJobs.id, transcodingJobId)).get();
  if (job) await setCaptionErrors(tx, job, { ...job.captionErrors, [language]: message });
}

export const setCaptionErrors = (tx: Db, { id }: JobRow, captionErrors: CaptionErrors): Promise<JobRow> =>
  tx.update(transcodingJobs).set({ captionErrors }).where(eq(transcodingJobs.id, id)).returning().get();

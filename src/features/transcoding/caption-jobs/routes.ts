import { eq } from "drizzle-orm";
import * as v from "valibot";
import type { App } from "#app.ts";
import { storeText } from "#features/subtitles/store.ts";
import { noteTranscriber } from "#features/subtitles/transcribers.ts";
import { notFound } from "#lib/base";
import { route } from "#platform/http/route.ts";
import { storageOf } from "#platform/http/storage.ts";
import { MAX_WORDS_BYTES, type PartTimes, SpeechPlan, SpeechResult, wordsPathOf } from "#protocol/speech.ts";
import type { Db } from "#storage/db/open.ts";
import { type CaptionJobRow, captionJobs } from "#storage/db/schema.ts";
import { divideCaptions } from "../caption-parts/divide.ts";
import { captionText, incomplete, readWords } from "../captions.ts";
import { isOfPart } from "../join-contract.ts";
import { joinedPart } from "../joined-part.ts";
import { leaseTokenOf, STALE } from "../lease.ts";
import { callback, leaseCallbacks } from "../lease-callbacks.ts";
import { leaseLock } from "../lease-urls.ts";
import { renewed } from "../side-contract.ts";
import { signFor } from "../sign-artifacts.ts";
import { noteWorker } from "../workers.ts";
import { completeCaptions, isChanged, type Recognized } from "./complete.ts";
import { CAPTION_JOBS, captionsPath } from "./contract.ts";
import {
  assetOfCaptions,
  failAttempt,
  liveCaptions,
  renewCaptions,
  requeueCaptions,
  restartCaptions,
} from "./queue.ts";
import { CaptionJob, toCaptionJob } from "./schema.ts";

const base = `${CAPTION_JOBS}/:id`;
const MAX_CAPTION_BYTES = 4 * 2 ** 20;

const callbacks = leaseCallbacks<{ id: number }>({
  path: base,
  name: "CaptionJob",
  summaries: {
    heartbeat: "Renew the lease of a caption job and report progress",
    fail: "Fail an attempt of a caption job",
    release: "Release a caption job without counting an attempt",
    artifacts: "Get presigned URLs to read the media of an asset from, and to upload its captions to",
  },
  result: CaptionJob,
  held({ app, params, headers }) {
    const live = (db: Db) => liveCaptions(db, app, params.id, leaseTokenOf(headers));
    return {
      async renew(report) {
        await noteWorker(app, report.worker_id);
        await noteTranscriber(app, report.worker_id);
        return renewed(await app.write(async (tx) => renewCaptions(tx, app, await live(tx), report)));
      },
      async fail(failure) {
        const job = await app.write(async (tx) => {
          const job = await live(tx);
          // Media that were replaced meanwhile cannot be read.
          const isOther = isChanged(await assetOfCaptions(tx, job), job);
          return isOther ? restartCaptions(tx, app, job) : failAttempt(tx, app, job, failure);
        });
        return toCaptionJob(job);
      },
      release: async () => toCaptionJob(await app.write(async (tx) => requeueCaptions(tx, app, await live(tx), false))),
      async sign(wanted) {
        const job = await live(app.db);
        const asset = await assetOfCaptions(app.db, job);
        const media = !isChanged(asset, job) ? joinedPart(asset) : null;
        return signFor(app, `captions:${params.id}`, wanted, {
          isAllowed: (path, isRead) =>
            isRead ? media !== null && isOfPart(media, path) : captionFiles(job).includes(path),
          expected: (isRead) => (isRead ? "must be media of the asset" : "must be speech.path or speech.words_path"),
          maxBytes: (path) => (path.endsWith(".json") ? MAX_WORDS_BYTES : MAX_CAPTION_BYTES),
        });
      },
    };
  },
});

/** The jobs of captions that are generated for ready assets, and the callbacks of their workers: those of a job. */
export const captionJobRoutes = [
  route({
    method: "GET",
    path: base,
    tag: "Subtitles",
    operationId: "getCaptionJob",
    summary: "Get the job that generates the captions of an asset",
    params: callback.params,
    responses: { 200: CaptionJob },
    async handle({ app, caller, params }) {
      const job = await app.db.select().from(captionJobs).where(eq(captionJobs.id, params.id)).get();
      const isOwn = job && (caller.kind === "admin" || (caller.kind === "key" && caller.tenantId === job.tenantId));
      return isOwn ? toCaptionJob(job) : notFound("caption job");
    },
  }),
  callbacks.heartbeat,
  route({
    ...callback,
    path: `${base}/complete`,
    operationId: "completeCaptionJob",
    summary: "Complete a caption job: its captions are in storage; or the step `plan`, with the parts of the audio",
    body: v.object({
      speech: v.pipe(v.optional(SpeechResult), v.description("What was recognized")),
      parts: v.optional(SpeechPlan),
    }),
    responses: { 200: CaptionJob },
    errors: { ...STALE, 422: ["invalid_transcoding_result"] },
    async handle({ app, params, body, headers }) {
      const token = leaseTokenOf(headers);
      return leaseLock(app).withLock(`captions:${params.id}`, async () => {
        const live = (db: Db) => liveCaptions(db, app, params.id, token);
        const job = await live(app.db);
        const { speech, parts } = body;
        if (parts && job.parts === null)
          return toCaptionJob(await app.write(async (tx) => plannedCaptions(tx, app, await live(tx), parts)));
        if (!speech) return incomplete("speech", "is required");
        const recognized: Recognized = { stored: await storedText(app, job), speech };
        return toCaptionJob(await app.write(async (tx) => completeCaptions(tx, app, await live(tx), recognized)));
      });
    },
  }),
  callbacks.fail,
  callbacks.release,
  callbacks.artifacts,
];

const captionFiles = ({ prefix }: CaptionJobRow): string[] => {
  const path = captionsPath(prefix as string);
  return [path, wordsPathOf(path)];
};

async function plannedCaptions(tx: Db, app: App, job: CaptionJobRow, parts: readonly PartTimes[]) {
  const isOther = isChanged(await assetOfCaptions(tx, job), job);
  return isOther ? restartCaptions(tx, app, job) : divideCaptions(tx, app, job, parts);
}

async function storedText(app: App, job: CaptionJobRow) {
  const path = captionsPath(job.prefix as string);
  const { tenantId } = job;
  const objects = storageOf(app);
  const checked = await captionText(app, objects, "speech.path", { path, tenantId });
  const words = await readWords(app, objects, { path: wordsPathOf(path), tenantId });
  return { ...(await storeText(app, { id: job.assetId, tenantId }, checked)), words };
}

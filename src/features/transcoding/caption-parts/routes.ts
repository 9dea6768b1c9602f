import * as v from "valibot";
import { noteTranscriber } from "#features/subtitles/transcribers.ts";
import { route } from "#platform/http/route.ts";
import { MAX_PART_BYTES, PartPage, PartSpeech } from "#protocol/speech.ts";
import type { Db } from "#storage/db/open.ts";
import { isChanged } from "../caption-jobs/complete.ts";
import { CAPTION_JOBS, CAPTION_PARTS, partsUrl } from "../caption-jobs/contract.ts";
import { assetOfCaptions, liveCaptions, restartCaptions } from "../caption-jobs/queue.ts";
import { CaptionJob, toCaptionJob } from "../caption-jobs/schema.ts";
import { isOfPart } from "../join-contract.ts";
import { joinedPart } from "../joined-part.ts";
import { leaseTokenOf, STALE } from "../lease.ts";
import { callback, leaseCallbacks } from "../lease-callbacks.ts";
import { renewed } from "../side-contract.ts";
import { signFor } from "../sign-artifacts.ts";
import { noteWorker } from "../workers.ts";
import { completePart, partsFrom, requireWithin, storedSpeech } from "./complete.ts";
import { failPart, jobOfPart, livePart, renewPart, requeuePart } from "./queue.ts";

const base = `${CAPTION_PARTS}/:id`;

const callbacks = leaseCallbacks<{ id: number }>({
  path: base,
  name: "CaptionJobPart",
  summaries: {
    heartbeat: "Renew the lease of a part of a caption job and report progress",
    fail: "Fail an attempt of a part of a caption job",
    release: "Release a part of a caption job without counting an attempt",
    artifacts: "Get presigned URLs to read the media of an asset from",
  },
  result: CaptionJob,
  held({ app, params, headers }) {
    const live = (db: Db) => livePart(db, app, params.id, leaseTokenOf(headers));
    return {
      async renew(report) {
        await noteWorker(app, report.worker_id);
        await noteTranscriber(app, report.worker_id);
        return renewed(await app.write(async (tx) => renewPart(tx, app, await live(tx), report)));
      },
      async fail(failure) {
        const job = await app.write(async (tx) => {
          const part = await live(tx);
          const job = await jobOfPart(tx, part);
          // Media that were replaced meanwhile cannot be read.
          const isOther = isChanged(await assetOfCaptions(tx, job), job);
          return isOther ? restartCaptions(tx, app, job) : failPart(tx, app, part, failure);
        });
        return toCaptionJob(job);
      },
      async release() {
        const job = await app.write(async (tx) => {
          const part = await live(tx);
          await requeuePart(tx, app, part, false);
          return jobOfPart(tx, part);
        });
        return toCaptionJob(job);
      },
      async sign(wanted) {
        const job = await jobOfPart(app.db, await live(app.db));
        const asset = await assetOfCaptions(app.db, job);
        const media = !isChanged(asset, job) ? joinedPart(asset) : null;
        return signFor(app, `part:${params.id}`, wanted, {
          isAllowed: (path, isRead) => isRead && media !== null && isOfPart(media, path),
          expected: () => "must be media of the asset, to read",
          maxBytes: () => 0,
        });
      },
    };
  },
});

/** The callbacks of workers for the parts of long audio, and the route that reads all of them to join them. */
export const captionPartRoutes = [
  route({
    ...callback,
    method: "GET",
    path: `${CAPTION_JOBS}/:id/parts`,
    operationId: "listCaptionJobParts",
    summary: "List what was recognized in the parts of a caption job, page by page",
    query: v.object({
      from: v.optional(
        v.pipe(
          v.string(),
          v.regex(/^\d{1,6}$/, "must be the number of a part"),
          v.transform(Number),
          v.description("The number of the first part"),
        ),
        "0",
      ),
    }),
    responses: { 200: PartPage },
    errors: STALE,
    async handle({ app, params, query, headers }) {
      const job = await liveCaptions(app.db, app, params.id, leaseTokenOf(headers));
      const { parts, next } = await partsFrom(app.db, job, query.from);
      return { parts, next: next === null ? null : partsUrl(app, job, next) };
    },
  }),
  callbacks.heartbeat,
  route({
    ...callback,
    path: `${base}/complete`,
    operationId: "completeCaptionJobPart",
    summary: "Complete a part of a caption job: what was recognized in it",
    body: v.object({ speech: v.pipe(PartSpeech, v.description("What was recognized")) }),
    maxBodyBytes: MAX_PART_BYTES,
    responses: { 200: CaptionJob },
    errors: STALE,
    async handle({ app, params, body, headers }) {
      const token = leaseTokenOf(headers);
      const live = (db: Db) => livePart(db, app, params.id, token);
      requireWithin(await live(app.db), body.speech);
      const stored = await storedSpeech(body.speech);
      const job = await app.write(async (tx) => {
        const part = await live(tx);
        const job = await jobOfPart(tx, part);
        const isOther = isChanged(await assetOfCaptions(tx, job), job);
        return isOther ? restartCaptions(tx, app, job) : completePart(tx, app, part, stored);
      });
      return toCaptionJob(job);
    },
  }),
  callbacks.fail,
  callbacks.release,
  callbacks.artifacts,
];

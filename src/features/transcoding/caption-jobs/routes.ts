import { eq } from "drizzle-orm";
import * as v from "valibot";
import type { App } from "#app.ts";
import { storeText } from "#features/subtitles/store.ts";
import { noteTranscriber } from "#features/subtitles/transcribers.ts";
import { invalid, notFound } from "#lib/base";
import { route } from "#platform/http/route.ts";
import { storageOf } from "#platform/http/storage.ts";
import { MAX_WORDS_BYTES, SpeechResult, wordsPathOf } from "#protocol/speech.ts";
import { Failure, Heartbeat, HeartbeatAnswer, SignArtifacts, SignedArtifacts } from "#protocol/worker.ts";
import type { Db } from "#storage/db/open.ts";
import { type AssetRow, assets, type CaptionJobRow, captionJobs } from "#storage/db/schema.ts";
import { captionText, readWords } from "../captions.ts";
import { isOfPart } from "../join-contract.ts";
import { joinedPart } from "../joined-part.ts";
import { leaseTokenOf, STALE, stale } from "../lease.ts";
import { leaseLock } from "../lease-urls.ts";
import { callback, renewed, signedFor } from "../side-callbacks.ts";
import { noteWorker } from "../workers.ts";
import { completeCaptions, isChanged, type Recognized } from "./complete.ts";
import { CAPTION_JOBS, captionsPath } from "./contract.ts";
import { failAttempt, liveCaptions, renewCaptions, requeueCaptions } from "./queue.ts";
import { CaptionJob, toCaptionJob } from "./schema.ts";

const base = `${CAPTION_JOBS}/:id`;
const MAX_CAPTION_BYTES = 4 * 2 ** 20;

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
  route({
    ...callback,
    path: `${base}/heartbeat`,
    operationId: "renewCaptionJobLease",
    summary: "Renew the lease of a caption job and report progress",
    body: Heartbeat,
    responses: { 200: HeartbeatAnswer },
    errors: STALE,
    async handle({ app, params, body, headers }) {
      await noteWorker(app, body.worker_id);
      await noteTranscriber(app, body.worker_id);
      const job = await app.write(async (tx) =>
        renewCaptions(tx, app, await liveCaptions(tx, app, params.id, leaseTokenOf(headers)), body),
      );
      return renewed(job);
    },
  }),
  route({
    ...callback,
    path: `${base}/complete`,
    operationId: "completeCaptionJob",
    summary: "Complete a caption job: its captions are in storage",
    body: v.object({ speech: SpeechResult }),
    responses: { 200: CaptionJob },
    errors: { ...STALE, 422: ["invalid_transcoding_result"] },
    async handle({ app, params, body, headers }) {
      const token = leaseTokenOf(headers);
      return leaseLock(app).withLock(`captions:${params.id}`, async () => {
        const job = await liveCaptions(app.db, app, params.id, token);
        const recognized: Recognized = { stored: await storedText(app, job), speech: body.speech };
        return toCaptionJob(
          await app.write(async (tx) =>
            completeCaptions(tx, app, await liveCaptions(tx, app, params.id, token), recognized),
          ),
        );
      });
    },
  }),
  route({
    ...callback,
    path: `${base}/fail`,
    operationId: "failCaptionJob",
    summary: "Fail an attempt of a caption job",
    body: Failure,
    responses: { 200: CaptionJob },
    errors: STALE,
    handle: async ({ app, params, body, headers }) =>
      toCaptionJob(
        await app.write(async (tx) => {
          const job = await liveCaptions(tx, app, params.id, leaseTokenOf(headers));
          // Media that were replaced meanwhile cannot be read.
          const isOther = isChanged(await assetOf(tx, job), job);
          return isOther ? requeueCaptions(tx, app, job, false) : failAttempt(tx, app, job, body);
        }),
      ),
  }),
  route({
    ...callback,
    path: `${base}/release`,
    operationId: "releaseCaptionJob",
    summary: "Release a caption job without counting an attempt",
    responses: { 200: CaptionJob },
    errors: STALE,
    handle: async ({ app, params, headers }) =>
      toCaptionJob(
        await app.write(async (tx) =>
          requeueCaptions(tx, app, await liveCaptions(tx, app, params.id, leaseTokenOf(headers)), false),
        ),
      ),
  }),
  route({
    ...callback,
    path: `${base}/artifacts`,
    operationId: "signCaptionJobArtifacts",
    summary: "Get presigned URLs to read the media of an asset from, and to upload its captions to",
    body: SignArtifacts,
    responses: { 200: SignedArtifacts },
    errors: STALE,
    async handle({ app, params, body, headers }) {
      const job = await liveCaptions(app.db, app, params.id, leaseTokenOf(headers));
      const asset = await assetOf(app.db, job);
      const objects = storageOf(app);
      const options = signedFor(app, `captions:${params.id}`);
      const isRead = body.method === "GET";
      const isPlain = (path: string) => path.split("/").every((part) => part !== "" && part !== "." && part !== "..");
      const media = !isChanged(asset, job) ? joinedPart(asset) : null;
      const isAllowed = (path: string) =>
        isPlain(path) && (isRead ? media !== null && isOfPart(media, path) : captionFiles(job).includes(path));
      return Promise.all(
        body.paths.map(async (path, index) => {
          if (!isAllowed(path))
            invalid(
              `paths.${index}`,
              isRead ? "must be media of the asset" : "must be speech.path or speech.words_path",
            );
          const signed = isRead
            ? await objects.signGet(path, options)
            : await objects.signPut(path, {
                ...options,
                maxBytes: path.endsWith(".json") ? MAX_WORDS_BYTES : MAX_CAPTION_BYTES,
              });
          return { path, url: signed.url, method: signed.method, headers: signed.headers };
        }),
      );
    },
  }),
];

const captionFiles = ({ prefix }: CaptionJobRow): string[] => {
  const path = captionsPath(prefix as string);
  return [path, wordsPathOf(path)];
};

const assetOf = async (db: Db, { assetId }: CaptionJobRow): Promise<AssetRow> =>
  (await db.select().from(assets).where(eq(assets.id, assetId)).get()) ?? stale();

async function storedText(app: App, job: CaptionJobRow) {
  const path = captionsPath(job.prefix as string);
  const { tenantId } = job;
  const objects = storageOf(app);
  const checked = await captionText(app, objects, "speech.path", { path, tenantId });
  const words = await readWords(app, objects, { path: wordsPathOf(path), tenantId });
  return { ...(await storeText(app, { id: job.assetId, tenantId }, checked)), words };
}

import type { IncomingMessage } from "node:http";
import type * as v from "valibot";
import type { App } from "#app.ts";
import { sameSecret } from "#lib/base";
import { Reply } from "#platform/http/route.ts";
import { storageOf } from "#platform/http/storage.ts";
import { FIRST_CAPTIONS_VERSION } from "#protocol/speech.ts";
import type { Claim } from "#protocol/worker.ts";
import { hasSpeechModel, noteTranscriber } from "../subtitles/transcribers.ts";
import { trackContract } from "./added-audio/contract.ts";
import { claimTrack } from "./added-audio/queue.ts";
import { claimSpeech } from "./caption-jobs/claim.ts";
import { claim, isEncodingQueued } from "./claim.ts";
import { workerContract } from "./contract.ts";
import { nameOfLease } from "./lease-urls.ts";
import { passOn, waitForJob, wakeNext } from "./long-poll.ts";
import { correctSize } from "./registered-source.ts";
import { type Capabilities, NO_CAPABILITIES, takesTasks } from "./requirements.ts";
import { wantsSourceTexts } from "./source-texts.ts";
import { NO_CAPTIONS, sourceUpload, wantedCaptions } from "./source-upload.ts";
import { type ClaimedTask, taskOfContract } from "./tasks/start.ts";
import { reportsCaptions, reportsClosedCaptions } from "./tasks/written.ts";
import { noteWorker } from "./workers.ts";

type Wishes = v.InferOutput<typeof Claim>;
type Answered = Awaited<ReturnType<typeof contractFor>>;

/**
 * Claims a job, waiting as long as `body` requests and the client is connected; 204 when none arrives. `base` is the
 * URL prefix of the callbacks. By its `capabilities` it may be a task, or a job without a source.
 */
export async function claimWithin(
  app: App,
  key: string,
  body: Wishes,
  {
    incoming,
    base,
    capabilities = NO_CAPABILITIES,
    takesTracks = false,
    answer = (contract) => contract,
  }: {
    incoming: IncomingMessage | undefined;
    base?: string;
    capabilities?: Capabilities;
    /** Also encodes of added audio tracks, whose callbacks are their own. */
    takesTracks?: boolean;
    answer?: (contract: Answered, attemptId: number) => unknown;
  },
) {
  await noteWorker(app, body.worker_id, body.version);
  const lane = takesTasks(capabilities) || (takesTracks && body.lane === "captions") ? body.lane : "main";
  const takes = { capabilities, lane };
  // In the lane `main` after all others. A model may be installed while the request waits.
  const takesCaptions = () =>
    takesTracks &&
    (lane === "captions" || (lane === "main" && capabilities.captions >= FIRST_CAPTIONS_VERSION)) &&
    (!body.capabilities?.speech_model || hasSpeechModel(app));
  if (takesCaptions()) await noteTranscriber(app, body.worker_id);
  const workerId = body.worker_id ?? null;
  const deadline = performance.now() + (body.wait_seconds ?? 0) * 1000;
  const socket = incoming?.socket;
  let seen = 0;
  for (;;) {
    // The client has disconnected: it would not receive the lease, and the job would wait until the lease expires.
    if (socket?.destroyed) return new Reply(204, undefined);
    const claimed = lane === "captions" ? null : await claim(app, { key, workerId }, takes);
    if (claimed) {
      wakeNext(app);
      return answer(await contractFor(app, claimed, { ...body, lane: takes.lane }, base), claimed.lease.attemptId);
    }
    // After jobs: what an asset plays at all comes first.
    const track = takesTracks && takes.lane === "main" ? await claimTrack(app, key) : null;
    if (track) {
      wakeNext(app);
      return trackContract(app, track, sharesDisk(app, body));
    }
    const isPreceded = takesCaptions() && (await isEncodingQueued(app));
    const speech = takesCaptions()
      ? await claimSpeech(app, { key, workerId, isPreceded, capabilities }, { sharesDisk: sharesDisk(app, body), lane })
      : null;
    if (speech) {
      wakeNext(app);
      return speech;
    }
    passOn(app, takes.lane, seen);
    const leftSeconds = (deadline - performance.now()) / 1000;
    if (leftSeconds <= 0 || app.stopping.aborted) return new Reply(204, undefined);
    seen = await waitForJob(app, { seconds: leftSeconds, socket, workerId, seen, ...takes });
  }
}

function sharesDisk(app: App, { capabilities }: Wishes): boolean {
  const proof = capabilities?.local_proof;
  return app.config.trust_shared_disk && proof !== undefined && sameSecret(proof, app.localProof);
}

async function contractFor(app: App, { job, asset, lease, task }: ClaimedTask, body: Wishes, base?: string) {
  const hasSource = !job.clip && !job.joined;
  const upload = !hasSource ? null : await sourceUpload(app.db, asset.id);
  // A registered source's size may have been reported wrong, and a worker rejects a source of another size.
  const stored = upload || !hasSource ? null : await storageOf(app).head(asset.sourceKey);
  if (stored && stored.bytes !== asset.sourceBytes) await correctSize(app, asset, stored.bytes);
  const wanted = !job.clip && reportsCaptions(task) ? await wantedCaptions(app.db, asset.id, upload) : NO_CAPTIONS;
  // Those that are required decide whether the job fails. An older worker recognizes all of them during the encode.
  const hasSeparateCaptions =
    wanted.languages.length > 0 && !wanted.required && body.capabilities?.separate_captions === true;
  return workerContract(app, {
    job,
    asset,
    contentType: upload?.contentType ?? "application/octet-stream",
    sourceBytes: stored?.bytes ?? asset.sourceBytes,
    captions: wanted,
    hasSeparateCaptions,
    readsSourceTexts: wantsSourceTexts(asset, job) && (await reportsClosedCaptions(app.db, task)),
    lease: { ...lease, name: nameOfLease(task) },
    sharesDisk: sharesDisk(app, body),
    task: task.knownAsJob ? null : await taskOfContract(app.db, task),
    lane: body.lane,
    ...(base && { base }),
  });
}

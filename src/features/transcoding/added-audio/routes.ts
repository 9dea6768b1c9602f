import * as v from "valibot";
import { invalid } from "#lib/base";
import { AUDIO_TRACK_STATUSES } from "#model/enums.ts";
import { route } from "#platform/http/route.ts";
import { storageOf } from "#platform/http/storage.ts";
import { Completion, Failure, Heartbeat, HeartbeatAnswer, SignArtifacts, SignedArtifacts } from "#protocol/worker.ts";
import { leaseTokenOf, STALE } from "../lease.ts";
import { leaseLock } from "../lease-urls.ts";
import { callback, renewed, signedFor } from "../side-callbacks.ts";
import { noteWorker } from "../workers.ts";
import { AUDIO_TRACK_JOBS } from "./contract.ts";
import { completeTrack, failTrack, liveTrack, renewTrack, requeueTrack } from "./queue.ts";
import { verifyTrack } from "./verify.ts";

const base = `${AUDIO_TRACK_JOBS}/:id`;
const MAX_ARTIFACT_BYTES = 4 * 2 ** 30;
const TrackJob = v.pipe(
  v.object({ id: v.number(), asset_id: v.number(), status: v.picklist(AUDIO_TRACK_STATUSES) }),
  v.title("AudioTrackJob"),
);
const toJob = ({
  id,
  assetId,
  status,
}: {
  id: number;
  assetId: number;
  status: (typeof AUDIO_TRACK_STATUSES)[number];
}) => ({
  id,
  status,
  asset_id: assetId,
});

/** The callbacks of the encode of an added audio track: those of a job, with the same bodies. */
export const addedAudioRoutes = [
  route({
    ...callback,
    path: `${base}/heartbeat`,
    operationId: "renewAudioTrackLease",
    summary: "Renew the lease of an audio track's encode",
    body: Heartbeat,
    responses: { 200: HeartbeatAnswer },
    errors: STALE,
    async handle({ app, params, body, headers }) {
      await noteWorker(app, body.worker_id);
      const track = await app.write(async (tx) =>
        renewTrack(tx, app, await liveTrack(tx, app, params.id, leaseTokenOf(headers))),
      );
      return renewed(track);
    },
  }),
  route({
    ...callback,
    path: `${base}/complete`,
    operationId: "completeAudioTrack",
    summary: "Complete the encode of an audio track",
    body: Completion,
    responses: { 200: TrackJob },
    errors: { ...STALE, 422: ["invalid_transcoding_result"] },
    async handle({ app, params, headers }) {
      const token = leaseTokenOf(headers);
      return leaseLock(app).withLock(`audio:${params.id}`, async () => {
        const verified = await verifyTrack(app, await liveTrack(app.db, app, params.id, token));
        return toJob(
          await app.write(async (tx) => completeTrack(tx, app, await liveTrack(tx, app, params.id, token), verified)),
        );
      });
    },
  }),
  route({
    ...callback,
    path: `${base}/fail`,
    operationId: "failAudioTrack",
    summary: "Fail the encode of an audio track",
    body: Failure,
    responses: { 200: TrackJob },
    errors: STALE,
    handle: async ({ app, params, body, headers }) =>
      toJob(
        await app.write(async (tx) =>
          failTrack(tx, app, await liveTrack(tx, app, params.id, leaseTokenOf(headers)), body),
        ),
      ),
  }),
  route({
    ...callback,
    path: `${base}/release`,
    operationId: "releaseAudioTrack",
    summary: "Release the encode of an audio track without counting an attempt",
    responses: { 200: TrackJob },
    errors: STALE,
    handle: async ({ app, params, headers }) =>
      toJob(
        await app.write(async (tx) =>
          requeueTrack(tx, app, await liveTrack(tx, app, params.id, leaseTokenOf(headers)), false),
        ),
      ),
  }),
  route({
    ...callback,
    path: `${base}/artifacts`,
    operationId: "signAudioTrackArtifacts",
    summary: "Get presigned URLs to upload the files of an audio track to",
    body: SignArtifacts,
    responses: { 200: SignedArtifacts },
    errors: STALE,
    async handle({ app, params, body, headers }) {
      const { prefix } = await liveTrack(app.db, app, params.id, leaseTokenOf(headers));
      const objects = storageOf(app);
      const options = signedFor(app, `audio:${params.id}`);
      return Promise.all(
        body.paths.map(async (path, index) => {
          const isBelow = prefix !== null && path.startsWith(prefix);
          if (!isBelow || path.split("/").some((part) => part === "" || part === "." || part === ".."))
            invalid(`paths.${index}`, `must be under ${prefix}`);
          const {
            url,
            method,
            headers: signed,
          } = body.method === "GET"
            ? await objects.signGet(path, options)
            : await objects.signPut(path, { ...options, maxBytes: MAX_ARTIFACT_BYTES });
          return { path, url, method, headers: signed };
        }),
      );
    },
  }),
];

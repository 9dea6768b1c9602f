import { eq } from "drizzle-orm";
import * as v from "valibot";
import type { App } from "#app.ts";
import { HttpError } from "#lib/base";
import { AUDIO_TRACK_STATUSES } from "#model/enums.ts";
import { isBelow } from "#model/object-keys.ts";
import { route } from "#platform/http/route.ts";
import { describedAs } from "#protocol/fields.ts";
import { AssetId, RecordId, StatusField } from "#protocol/record-fields.ts";
import { Completion } from "#protocol/worker.ts";
import type { Db } from "#storage/db/open.ts";
import { type AssetRow, type AudioTrackRow, assets } from "#storage/db/schema.ts";
import { leaseTokenOf, stale } from "../lease.ts";
import { callback, leaseCallbacks } from "../lease-callbacks.ts";
import { leaseLock } from "../lease-urls.ts";
import { renewed } from "../side-contract.ts";
import { signFor } from "../sign-artifacts.ts";
import { noteWorker } from "../workers.ts";
import { startOfMedia } from "./clock.ts";
import { AUDIO_TRACK_JOBS } from "./contract.ts";
import { fitted } from "./fit.ts";
import { completeTrack, failTrack, liveTrack, renewTrack, requeueTrack } from "./queue.ts";
import { verifyTrack } from "./verify.ts";

const base = `${AUDIO_TRACK_JOBS}/:id`;
const MAX_ARTIFACT_BYTES = 4 * 2 ** 30;
const TrackJob = v.pipe(
  v.object({ id: RecordId, asset_id: AssetId, status: describedAs(StatusField, v.picklist(AUDIO_TRACK_STATUSES)) }),
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

/** How often an asset can get other media while a track is completed. */
const ROUNDS = 5;

/**
 * Completes the track that `live` reads while its lease is valid. The asset may have got media of another length since the track
 * was added: it is fitted to those that the asset has when it is complete.
 */
async function completeFitted(
  app: App,
  live: (db: Db) => Promise<AudioTrackRow>,
  rounds = ROUNDS,
): Promise<AudioTrackRow> {
  const track = await live(app.db);
  const verified = { ...(await verifyTrack(app, track)), prefix: track.prefix as string };
  const { mediaPrefix, durationSeconds, ...asset } = await assetOf(app.db, track);
  const startSeconds = await startOfMedia(app, { ...asset, mediaPrefix, durationSeconds });
  const isMoved = startSeconds !== track.startSeconds || durationSeconds !== track.lengthSeconds;
  // One that an older server queued for a clip. No silence makes its times those of the media: it is encoded again.
  const isElsewhere = startSeconds > 0 && startSeconds !== track.startSeconds;
  const own = { ...verified, tenantId: track.tenantId };
  const fit = isMoved && startSeconds === 0 ? await fitted(app, own, { durationSeconds, signal: app.stopping }) : null;
  const completed = await app.write(async (tx) => {
    const current = await live(tx);
    if ((await assetOf(tx, current)).mediaPrefix !== mediaPrefix) return null;
    if (isElsewhere) return requeueTrack(tx, app, current, false, { startSeconds, lengthSeconds: durationSeconds });
    return completeTrack(tx, app, current, fit ?? verified);
  });
  if (completed) return completed;
  if (rounds === 1) throw new HttpError(409, "asset_conflict", "The asset gets other media again and again.");
  return completeFitted(app, live, rounds - 1);
}

/** Throws 409 `stale_lease` when it was deleted, and the track with it. */
const assetOf = async (db: Db, { assetId }: AudioTrackRow): Promise<AssetRow> =>
  (await db.select().from(assets).where(eq(assets.id, assetId)).get()) ?? stale();

const callbacks = leaseCallbacks<{ id: number }>({
  path: base,
  name: "AudioTrack",
  summaries: {
    heartbeat: "Renew the lease of an audio track's encode",
    fail: "Fail the encode of an audio track",
    release: "Release the encode of an audio track without counting an attempt",
    artifacts: "Get presigned URLs to upload the files of an audio track to",
  },
  result: TrackJob,
  held({ app, params, headers }) {
    const live = (db: Db) => liveTrack(db, app, params.id, leaseTokenOf(headers));
    return {
      async renew({ worker_id }) {
        await noteWorker(app, worker_id);
        return renewed(await app.write(async (tx) => renewTrack(tx, app, await live(tx))));
      },
      fail: async (failure) => toJob(await app.write(async (tx) => failTrack(tx, app, await live(tx), failure))),
      release: async () => toJob(await app.write(async (tx) => requeueTrack(tx, app, await live(tx), false))),
      async sign(wanted) {
        const { prefix } = await live(app.db);
        return signFor(app, `audio:${params.id}`, wanted, {
          isAllowed: (path) => prefix !== null && isBelow(prefix, path),
          expected: () => `must be under ${prefix}`,
          maxBytes: () => MAX_ARTIFACT_BYTES,
        });
      },
    };
  },
});

/** The callbacks of the encode of an added audio track: those of a job, with the same bodies. */
export const addedAudioRoutes = [
  callbacks.heartbeat,
  route({
    ...callback,
    path: `${base}/complete`,
    operationId: "completeAudioTrack",
    summary: "Complete the encode of an audio track",
    body: Completion,
    responses: { 200: TrackJob },
    errors: { 409: ["stale_lease", "asset_conflict"], 422: ["invalid_transcoding_result"] },
    async handle({ app, params, headers }) {
      const token = leaseTokenOf(headers);
      return leaseLock(app).withLock(`audio:${params.id}`, async () =>
        toJob(await completeFitted(app, (db) => liveTrack(db, app, params.id, token))),
      );
    },
  }),
  callbacks.fail,
  callbacks.release,
  callbacks.artifacts,
];

import * as v from "valibot";
import { AUDIO_TRACK_STATUSES } from "#model/enums.ts";
import { route } from "#platform/http/route.ts";
import { Completion } from "#protocol/worker.ts";
import type { Db } from "#storage/db/open.ts";
import { leaseTokenOf, STALE } from "../lease.ts";
import { callback, leaseCallbacks } from "../lease-callbacks.ts";
import { leaseLock } from "../lease-urls.ts";
import { renewed } from "../side-contract.ts";
import { signFor } from "../sign-artifacts.ts";
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
          isAllowed: (path) => prefix !== null && path.startsWith(prefix),
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
  callbacks.fail,
  callbacks.release,
  callbacks.artifacts,
];

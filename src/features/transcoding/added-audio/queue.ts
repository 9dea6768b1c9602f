import { and, asc, eq, isNull, lte, or } from "drizzle-orm";
import type { App } from "#app.ts";
import { addStoredBytes } from "#features/assets/stored-bytes.ts";
import { markReferenced, scheduleDeletion } from "#platform/http/object-gc.ts";
import type { Db } from "#storage/db/open.ts";
import { type AudioTrackRow, audioTracks } from "#storage/db/schema.ts";
import { isLeased, leaseEnd } from "../lease.ts";
import { claimSide, type LeasedSide, NO_LEASE, nextAttempt, requireLease } from "../side-lease.ts";
import { emitAudioTrack, emitAudioTrackErrored } from "./events.ts";

/**
 * The queue of added audio tracks. Each is one encode of the uploaded file by a worker, with the contract of a job, but apart from
 * the jobs of its asset: these change what the asset plays, and one that fails changes nothing here.
 */

export type LeasedTrack = LeasedSide<AudioTrackRow>;

const isDue = (now: number) =>
  and(
    eq(audioTracks.status, "processing"),
    lte(audioTracks.availableAt, now),
    or(isNull(audioTracks.leaseExpiresAt), lte(audioTracks.leaseExpiresAt, now)),
  );

const nextOf = (db: Db, now: number): Promise<AudioTrackRow | undefined> =>
  db.select().from(audioTracks).where(isDue(now)).orderBy(asc(audioTracks.id)).limit(1).get();

/** Whether a track waits for a worker. */
export const hasQueuedTrack = async ({ db, clock }: App): Promise<boolean> =>
  (await db.select({ id: audioTracks.id }).from(audioTracks).where(isDue(clock.now())).limit(1).get()) !== undefined;

/** Leases the first track that waits, or returns what this key has leased already. Null: there is none. */
export const claimTrack = (app: App, key: string): Promise<LeasedTrack | null> =>
  claimSide(app, key, {
    kind: "track",
    leasedBy,
    nextOf: (db) => nextOf(db, app.clock.now()),
    faultOf: () => null,
    fail: (tx, track, fault) => giveUp(tx, app, track, fault),
    start: (tx, { id }, _, lease) => tx.update(audioTracks).set(lease).where(eq(audioTracks.id, id)).returning().get(),
  });

const leasedBy = (db: Db, key: string): Promise<AudioTrackRow | undefined> =>
  db
    .select()
    .from(audioTracks)
    .where(and(eq(audioTracks.status, "processing"), eq(audioTracks.claimKey, key)))
    .get();

const trackById = (db: Db, id: number): Promise<AudioTrackRow | undefined> =>
  db
    .select()
    .from(audioTracks)
    .where(and(eq(audioTracks.id, id), eq(audioTracks.status, "processing")))
    .get();

/** The track of a lease that is valid. Throws 409 `stale_lease`, also when it was deleted. */
export const liveTrack = async (db: Db, app: App, id: number, token: string): Promise<AudioTrackRow> =>
  requireLease(app, await trackById(db, id), token);

/** Whether the lease of a track is valid, for the URLs of its worker. */
export async function isTrackLive({ db, clock }: App, id: number): Promise<boolean> {
  const track = await trackById(db, id);
  return track !== undefined && isLeased(track, clock.now());
}

export const renewTrack = (tx: Db, app: App, { id }: AudioTrackRow): Promise<AudioTrackRow> =>
  tx
    .update(audioTracks)
    .set({ leaseExpiresAt: leaseEnd(app) })
    .where(eq(audioTracks.id, id))
    .returning()
    .get();

/** Gives the track back; `isCounted` is false for a worker that stops, and for `times` that are others. */
export async function requeueTrack(
  tx: Db,
  app: App,
  track: AudioTrackRow,
  isCounted: boolean,
  times: Partial<Pick<AudioTrackRow, "startSeconds" | "lengthSeconds">> = {},
): Promise<AudioTrackRow> {
  const now = app.clock.now();
  return tx
    .update(audioTracks)
    .set({ ...NO_LEASE, ...nextAttempt(track, isCounted, now), prefix: null, updatedAt: now, ...times })
    .where(eq(audioTracks.id, track.id))
    .returning()
    .get();
}

type Fault = { code: string; message: string };

/** A failed attempt: another follows, unless the file is at fault, or none is left. */
export const failTrack = (tx: Db, app: App, track: AudioTrackRow, fault: Fault & { retryable: boolean }) =>
  fault.retryable && track.attempts < app.config.max_attempts
    ? requeueTrack(tx, app, track, true)
    : giveUp(tx, app, track, fault);

/** The track stays, and says why; its file is deleted. */
async function giveUp(tx: Db, app: App, track: AudioTrackRow, { code, message }: Fault): Promise<AudioTrackRow> {
  if (track.sourceKey !== null) await scheduleDeletion(tx, app, [track.sourceKey]);
  await addStoredBytes(tx, app, { id: track.assetId, tenantId: track.tenantId }, -track.bytes);
  const failed = { status: "failed" as const, errorCode: code, errorMessage: message };
  const given = await tx
    .update(audioTracks)
    .set({
      ...NO_LEASE,
      ...failed,
      sourceKey: null,
      prefix: null,
      bytes: 0,
      isDefault: false,
      updatedAt: app.clock.now(),
    })
    .where(eq(audioTracks.id, track.id))
    .returning()
    .get();
  await emitAudioTrackErrored(tx, app, given, { code, message });
  return given;
}

/** The track plays from now on; `prefix` is that of its attempt, or of media that were made of it. */
export async function completeTrack(
  tx: Db,
  app: App,
  track: AudioTrackRow,
  { media, bytes, prefix }: { media: NonNullable<AudioTrackRow["media"]>; bytes: number; prefix: string },
): Promise<AudioTrackRow> {
  await markReferenced(tx, prefix);
  if (track.sourceKey !== null) await scheduleDeletion(tx, app, [track.sourceKey]);
  await addStoredBytes(tx, app, { id: track.assetId, tenantId: track.tenantId }, bytes - track.bytes);
  if (track.isDefault) await clearDefault(tx, track.assetId, track.id);
  const completed = await tx
    .update(audioTracks)
    .set({ ...NO_LEASE, status: "ready", sourceKey: null, prefix, media, bytes, updatedAt: app.clock.now() })
    .where(eq(audioTracks.id, track.id))
    .returning()
    .get();
  await emitAudioTrack(tx, app, "video.audio_track.ready", completed);
  return completed;
}

/** At most one track of an asset is the default. */
export async function clearDefault(tx: Db, assetId: number, except: number): Promise<void> {
  const rows = await tx
    .select({ id: audioTracks.id })
    .from(audioTracks)
    .where(and(eq(audioTracks.assetId, assetId), eq(audioTracks.isDefault, true)))
    .all();
  for (const { id } of rows)
    if (id !== except) await tx.update(audioTracks).set({ isDefault: false }).where(eq(audioTracks.id, id));
}

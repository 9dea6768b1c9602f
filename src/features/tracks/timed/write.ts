import { and, eq, sql } from "drizzle-orm";
import type * as v from "valibot";
import type { App } from "#app.ts";
import { getAsset } from "#features/assets/queries.ts";
import { withinStorage } from "#features/tenants/quota.ts";
import { HttpError, invalid, notFound } from "#lib/base";
import { emit } from "#platform/events/emit.ts";
import type { Caller } from "#platform/http/caller.ts";
import type { Db } from "#storage/db/open.ts";
import { type TrackCue, type TrackRow, tracks } from "#storage/db/schema.ts";
import { getTrack } from "./queries.ts";
import { MAX_CUE_BYTES, MAX_CUES, MAX_TRACKS, type TrackPatch, type TrackWrite, USE_STORAGE_KEY } from "./schema.ts";

type Patch = v.InferOutput<typeof TrackPatch>;
type Write = v.InferOutput<typeof TrackWrite>;

/** Cues as stored: sorted by start, stable. Throws 422 beyond either limit. */
function storedCues(cues: TrackCue[]): TrackCue[] {
  const tooMany = cues.length > MAX_CUES;
  if (tooMany || Buffer.byteLength(JSON.stringify(cues)) > MAX_CUE_BYTES) {
    throw new HttpError(422, "cues_too_large", USE_STORAGE_KEY, { details: { cues: [USE_STORAGE_KEY] } });
  }
  return cues.toSorted((a, b) => a.start_ms - b.start_ms);
}

function requireContent(cues: TrackCue[] | null, storageKey: string | null): void {
  if (cues !== null || storageKey !== null) return;
  throw new HttpError(422, "cues_or_storage_key_required", "Set cues, storage_key or both.", {
    details: { cues: ["set cues, storage_key or both"] },
  });
}

/** Throws 422 `track_limit_reached` where the asset can have no further track. */
async function requireRoom(tx: Db, assetId: number): Promise<void> {
  const rows = await tx.all(sql`select 1 from tracks where asset_id = ${assetId} limit 1 offset ${MAX_TRACKS - 1}`);
  if (rows.length > 0)
    throw new HttpError(422, "track_limit_reached", `An asset has at most ${MAX_TRACKS} tracks; delete some first.`);
}

/**
 * Creates the track of (kind, name) on the asset, or replaces it, keeping its id and, by default, its position. Throws 422
 * `track_limit_reached` for a new one.
 */
export async function upsertTrack(
  tx: Db,
  app: App,
  caller: Caller,
  assetId: number,
  body: Write,
): Promise<{ track: TrackRow; created: boolean }> {
  const asset = (await getAsset(tx, caller, assetId)) ?? notFound("asset");
  const cues = body.cues ? storedCues(body.cues) : null;
  const storageKey = body.storage_key ?? null;
  requireContent(cues, storageKey);
  const now = app.clock.now();
  const before = await findTrack(tx, asset.id, body.kind, body.name);
  if (!before) await requireRoom(tx, asset.id);
  const values = {
    status: body.status,
    cues,
    storageKey,
    source: body.source ?? null,
    producer: body.producer ?? null,
    position: body.position ?? before?.position ?? 0,
    updatedAt: now,
  };
  const put = () =>
    before
      ? tx.update(tracks).set(values).where(eq(tracks.id, before.id)).returning().get()
      : tx
          .insert(tracks)
          .values({
            ...values,
            tenantId: asset.tenantId,
            assetId: asset.id,
            kind: body.kind,
            name: body.name,
            createdAt: now,
          })
          .returning()
          .get();
  const track = await withinStorage(tx, app, asset.tenantId, put);
  await emitReady(tx, app, track, before?.status);
  return { track, created: !before };
}

/** Changes the given fields. Throws 422 when the new (kind, name) is another track's, or no content would remain. */
export async function patchTrack(
  tx: Db,
  app: App,
  caller: Caller,
  at: { assetId: number; id: number },
  patch: Patch,
): Promise<TrackRow> {
  const before = (await getTrack(tx, caller, at)) ?? notFound("track");
  const kind = patch.kind ?? before.kind;
  const name = patch.name ?? before.name;
  const holder = await findTrack(tx, before.assetId, kind, name);
  if (holder && holder.id !== before.id) invalid("name", `the asset already has a ${kind} track named ${name}`);
  const cues = patch.cues === undefined ? before.cues : patch.cues && storedCues(patch.cues);
  const storageKey = patch.storage_key === undefined ? before.storageKey : patch.storage_key;
  requireContent(cues, storageKey);
  const { position, status, source, producer } = patch;
  const values = { kind, name, cues, storageKey, position, status, source, producer, updatedAt: app.clock.now() };
  const track = await withinStorage(tx, app, before.tenantId, () =>
    tx.update(tracks).set(values).where(eq(tracks.id, before.id)).returning().get(),
  );
  await emitReady(tx, app, track, before.status);
  return track;
}

const findTrack = (tx: Db, assetId: number, kind: string, name: string): Promise<TrackRow | undefined> =>
  tx
    .select()
    .from(tracks)
    .where(and(eq(tracks.assetId, assetId), eq(tracks.kind, kind), eq(tracks.name, name)))
    .get();

/** Emitted once each time a track becomes ready, not each time a ready one is written. */
async function emitReady(tx: Db, app: App, track: TrackRow, before: TrackRow["status"] | undefined): Promise<void> {
  if (track.status !== "ready" || before === "ready") return;
  const data = { asset_id: String(track.assetId), track_id: track.id, kind: track.kind, name: track.name };
  await emit(tx, app, "video.track.ready", { tenantId: track.tenantId, data });
}

import { eq } from "drizzle-orm";
import type { App } from "#app.ts";
import { HttpError, invalid, newExternalId, notFound } from "#lib/base";
import { MAX_DURATION_SECONDS } from "#media/plan.ts";
import type { Caller } from "#platform/http/caller.ts";
import { storageOf } from "#platform/http/storage.ts";
import type { Db } from "#storage/db/open.ts";
import { type AssetRow, assets, type JoinedPart, tenants } from "#storage/db/schema.ts";
import { getAsset } from "../assets/queries.ts";
import { insertAsset } from "../assets/stored-bytes.ts";
import { addSubtitle } from "../subtitles/store.ts";
import { requireStored } from "../tenants/quota.ts";
import { upsertTrack } from "../tracks/timed/write.ts";
import { joinedPart, partFault } from "../transcoding/joined-part.ts";
import { queueJob } from "../transcoding/lifecycle/queue.ts";
import { requireEqualEncoding } from "./equal-encoding.ts";
import { addJoinedAudio, type JoinedAudio, joinAudio, type PlacedPart } from "./join-audio.ts";
import { type JoinedTexts, joinTexts } from "./join-texts.ts";

export type PreparedJoin = { parts: AssetRow[]; title: string; texts: JoinedTexts; audio: JoinedAudio };

/** Throws 422: the media are not of a form that can be joined. `reason` is a clause. */
const impossible = (reason: string): never => {
  throw new HttpError(422, "join_not_possible", `The assets cannot be joined: ${reason}.`);
};

/**
 * Checks that the caller's assets can be joined in this order, and joins their texts and added audio tracks. Throws 404, 422 `asset_not_ready`,
 * `encodings_differ`, `join_not_possible`, `document_too_complex`.
 */
export async function prepareJoin(
  app: App,
  caller: Caller,
  { ids, title }: { ids: readonly number[]; title: string | undefined },
  signal: AbortSignal,
): Promise<PreparedJoin> {
  const objects = storageOf(app);
  const rows = new Map<number, AssetRow>();
  for (const id of new Set(ids)) rows.set(id, (await getAsset(app.db, caller, id)) ?? notFound("asset"));
  const parts = ids.map((id) => rows.get(id) as AssetRow);
  const [first] = parts as [AssetRow];
  for (const part of rows.values()) {
    // With the admin token assets of several tenants can be read.
    if (part.tenantId !== first.tenantId) invalid("asset_ids", "must be assets of one tenant");
    requireComplete(part);
  }
  const seconds = parts.reduce((sum, { durationSeconds }) => sum + durationSeconds, 0);
  if (seconds > MAX_DURATION_SECONDS) impossible(`they are longer than ${MAX_DURATION_SECONDS / 3600} hours together`);
  const lengths = await requireEqualEncoding(app, objects, [...rows.values()], { signal, impossible });
  const texts = await joinTexts(app, parts, { signal, impossible });
  let at = 0;
  const placed = parts.map((asset): PlacedPart => {
    const from = at;
    at += lengths.get(asset.id) ?? 0;
    return { asset, from, to: at };
  });
  const audio = await joinAudio(app, objects, placed, { signal, impossible });
  return { parts, title: title ?? first.title, texts, audio };
}

function requireComplete(asset: AssetRow): void {
  const fault = partFault(asset);
  if (fault?.code === "asset_not_ready") throw new HttpError(422, fault.code, fault.message);
  if (fault) impossible(fault.message);
}

/**
 * Creates the asset of a prepared join with the job that writes its media. Throws 404 and 422 `asset_not_ready` as above,
 * 409 `asset_conflict` when a part got other media meanwhile, 403 `quota_exceeded`.
 */
export async function insertJoin(tx: Db, app: App, caller: Caller, join: PreparedJoin): Promise<AssetRow> {
  const { parts, title, texts, audio } = join;
  const joined: JoinedPart[] = [];
  let bytes = [...texts.subtitles, ...audio.tracks].reduce((sum, one) => sum + one.bytes, 0);
  for (const before of parts) {
    const part = (await getAsset(tx, caller, before.id)) ?? notFound("asset");
    requireComplete(part);
    if (part.mediaPrefix !== before.mediaPrefix) changed(part.id);
    bytes += mediaBytes(part);
    joined.push(joinedPart(part));
  }
  const [first] = parts as [AssetRow];
  const tenant = (await tx.select().from(tenants).where(eq(tenants.id, first.tenantId)).get()) ?? notFound("asset");
  requireStored(app, tenant, bytes);
  const asset = await insertAsset(tx, app, {
    tenantId: first.tenantId,
    externalId: newExternalId(),
    title,
    collectionId: first.collectionId,
    tags: first.tags,
    inputStatus: "uploaded",
    playbackStatus: "processing",
    playbackPolicy: first.playbackPolicy,
    encodingProfile: first.encodingProfile,
    // It has no source of its own.
    sourceKey: "",
    sourceDeletedAt: app.clock.now(),
    durationSeconds: parts.reduce((sum, { durationSeconds }) => sum + durationSeconds, 0),
    width: first.width,
    height: first.height,
    frameRate: first.frameRate,
    progress: 0,
  });
  await queueJob(tx, app, asset, { joined });
  await addJoinedAudio(tx, app, asset, { audio, first, changed });
  for (const { row, stored } of texts.subtitles) await addSubtitle(tx, app, asset, row, { stored });
  const owner: Caller = { kind: "key", keyId: 0, tenantId: first.tenantId, scopes: [] };
  for (const { id: _, updatedAt: __, ...track } of texts.tracks) await upsertTrack(tx, app, owner, asset.id, track);
  return (await tx.select().from(assets).where(eq(assets.id, asset.id)).get()) as AssetRow;
}

const changed = (id: number): never => {
  throw new HttpError(409, "asset_conflict", `The asset ${id} was encoded again or changed meanwhile; try again.`);
};

/** What the media of a part occupy; estimated where a clip does not state it. */
function mediaBytes({ renditions, audioRenditions, durationSeconds }: AssetRow): number {
  const all = [...renditions, ...audioRenditions];
  if (all.every(({ bytes }) => bytes != null)) return all.reduce((sum, { bytes }) => sum + (bytes ?? 0), 0);
  const rates = renditions.reduce((sum, one) => sum + (one.average_bandwidth ?? one.bandwidth), 0);
  return Math.round((rates * durationSeconds) / 8);
}

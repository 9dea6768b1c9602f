import { eq } from "drizzle-orm";
import type { App } from "#app.ts";
import { HttpError, newExternalId, notFound, pacer, sha256 } from "#lib/base";
import { batchPrefix } from "#model/object-keys.ts";
import type { Caller } from "#platform/http/caller.ts";
import { markReferenced } from "#platform/http/object-gc.ts";
import type { Db } from "#storage/db/open.ts";
import { type AssetRow, assets, type BatchRow, tenants, uploadBatches } from "#storage/db/schema.ts";
import { toAsset } from "../assets/schema.ts";
import { insertAsset } from "../assets/stored-bytes.ts";
import { textColumns } from "../assets/texts.ts";
import { languageOf } from "../subtitles/content.ts";
import { addSubtitle } from "../subtitles/store.ts";
import { requireStored } from "../tenants/quota.ts";
import { upsertTrack } from "../tracks/timed/write.ts";
import { emitAssetReady } from "../transcoding/lifecycle/events.ts";
import { type CheckedAsset, checkManifest } from "./check.ts";
import { TOO_COMPLEX } from "./check-media.ts";
import { batchLocks, clear, endBatch } from "./close.ts";
import type { Fault } from "./manifest-schema.ts";
import { getBatch, requireOpen } from "./queries.ts";
import { toBatch } from "./schema.ts";
import { removeStaged, type Staged, stage } from "./stage.ts";

/**
 * Creates ready assets from media that a client encoded: all or nothing, and once. The same manifest again returns the
 * same result, another one is 409. The needed objects are first copied to prefixes of the assets, so that no presigned
 * URL that is still valid can change them.
 */
export const commitManifest = (
  app: App,
  caller: Caller,
  id: number,
  manifest: { assets: readonly unknown[] },
  signal?: AbortSignal,
): Promise<unknown> =>
  batchLocks(app).withLock(id, async () => {
    const batch = (await getBatch(app.db, caller, id)) ?? notFound("batch");
    const manifestHash = sha256(JSON.stringify(manifest));
    if (batch.status === "committed") {
      if (batch.manifestHash === manifestHash && batch.result !== null) return JSON.parse(batch.result);
      throw new HttpError(409, "batch_conflict", "The batch is already committed with another manifest.");
    }
    requireOpen(batch, app.clock.now());
    const { faults, assets: checked, held } = await checkManifest(app, batch, manifest, signal);
    if (faults.length > 0) throw invalidManifest(faults);
    const staged = await stage(app, batch, { checked: checked as CheckedAsset[], held, signal });
    try {
      const { body, ended } = await app.write(async (tx) => {
        const still = (await getBatch(tx, caller, id)) ?? notFound("batch");
        // The batch may have changed while objects were copied.
        requireOpen(still, app.clock.now());
        const created = await createAssets(tx, app, still, staged);
        const ended = await endBatch(tx, app, still, { status: "committed", manifestHash });
        const body = { ...toBatch(app, ended, batchPrefix(ended)), assets: created.map(toAsset) };
        await tx
          .update(uploadBatches)
          .set({ result: JSON.stringify(body) })
          .where(eq(uploadBatches.id, id));
        return { body, ended };
      });
      await clear(app, ended);
      return body;
    } catch (error) {
      const now = await app.db.select().from(uploadBatches).where(eq(uploadBatches.id, id)).get();
      if (now?.status !== "committed") await removeStaged(app, staged);
      throw error;
    }
  });

function invalidManifest(faults: readonly Fault[]): HttpError {
  const details: Record<string, string[]> = {};
  for (const { path, message, code } of faults) details[path] = [...(details[path] ?? []), `${code}: ${message}`];
  const [first] = faults as [Fault];
  const more = faults.length > 1 ? ` (and ${faults.length - 1} more)` : "";
  const tooComplex = faults.find(({ code }) => code === TOO_COMPLEX);
  if (tooComplex) return new HttpError(422, TOO_COMPLEX, `${tooComplex.path}: ${tooComplex.message}`, { details });
  return new HttpError(422, "invalid_manifest", `${first.path}: ${first.message}${more}`, { details });
}

async function createAssets(tx: Db, app: App, batch: BatchRow, staged: readonly Staged[]): Promise<AssetRow[]> {
  const tenant = await tx.select().from(tenants).where(eq(tenants.id, batch.tenantId)).get();
  if (!tenant) return notFound("tenant");
  const adding = staged.reduce((sum, { mediaBytes, sourceBytes }) => sum + mediaBytes + sourceBytes, 0);
  requireStored(app, tenant, adding);
  const rows: AssetRow[] = [];
  const pace = pacer();
  for (const one of staged) {
    rows.push(await createAsset(tx, app, { tenantId: tenant.id, policy: tenant.defaultPlaybackPolicy, one }));
    await pace();
  }
  return rows;
}

type AssetCreation = { tenantId: number; policy: AssetRow["playbackPolicy"]; one: Staged };

async function createAsset(tx: Db, app: App, { tenantId, policy, one }: AssetCreation): Promise<AssetRow> {
  const { given, prefix, sourceKey, sourceBytes, mediaBytes } = one;
  await markReferenced(tx, prefix);
  if (sourceKey !== null) await markReferenced(tx, sourceKey);
  const [top] = one.renditions.toSorted((a, b) => (b.height ?? 0) - (a.height ?? 0));
  const at = (path: string | null | undefined) => (path ? prefix + path : null);
  const asset = await insertAsset(tx, app, {
    tenantId,
    externalId: given.external_id ?? newExternalId(),
    ...textColumns(given),
    inputStatus: "uploaded",
    playbackStatus: "ready",
    playbackPolicy: given.playback_policy ?? policy,
    sourceBytes,
    storageBytes: mediaBytes + sourceBytes,
    durationSeconds: one.durationSeconds,
    // Optional: a client need not deliver it.
    sourceKey: sourceKey ?? "",
    sourceSha256: given.source_sha256 ?? null,
    originalFilename: given.original_filename ?? null,
    relativePath: given.relative_path ?? null,
    mediaPrefix: prefix,
    manifestPath: at(given.hls.manifest_path),
    dashManifestPath: at(given.dash?.manifest_path),
    thumbnailPath: at(given.thumbnail_path),
    storyboardPath: at(given.storyboard_path),
    mp4Path: at(given.mp4_path),
    renditions: one.renditions.map((each) => ({ ...each, playlist_path: prefix + each.playlist_path })),
    width: top?.width ?? null,
    height: top?.height ?? null,
    frameRate: top?.frame_rate ?? null,
    warnings: given.warnings ?? [],
    progress: 100,
    tags: given.tags,
    readyAt: app.clock.now(),
  });
  await emitAssetReady(tx, app, asset);
  for (const [index, { language, label, is_default: isDefault, position }] of given.subtitles.entries()) {
    const stored = one.texts[index];
    if (!stored) throw new Error(`Subtitle ${index} was not stored`);
    const fields = { language: languageOf(language), label, source: "upload", isDefault, position } as const;
    await addSubtitle(tx, app, asset, fields, { stored });
  }
  const owner: Caller = { kind: "key", keyId: 0, tenantId, scopes: [] };
  for (const track of given.tracks) await upsertTrack(tx, app, owner, asset.id, track);
  return (await tx.select().from(assets).where(eq(assets.id, asset.id)).get()) ?? notFound("asset");
}

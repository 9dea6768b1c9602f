import * as v from "valibot";
import type { Db } from "../../../storage/db/open.ts";
import { type AssetRow, assets, type JobRow } from "../../../storage/db/schema.ts";
import { checkKey } from "../../../storage/objects/keys.ts";
import type { App } from "../../app.ts";
import type { Caller } from "../../http/caller.ts";
import { ByteCount, Id, Name, PlaybackPolicy, Sha256, Text } from "../../http/schemas.ts";
import { invalid } from "../../lib/errors.ts";
import { newExternalId } from "../../lib/tokens.ts";
import { ownCollection, requireFreeExternalId } from "../assets/queries.ts";
import { Asset, Description, ExternalId, InputStatus, PlaybackStatus, Tags, Title } from "../assets/schema.ts";
import { requireTenant } from "../tenants/queries.ts";
import { requireStored } from "../tenants/quota.ts";
import { addUsage } from "../tenants/usage.ts";
import { queueJob } from "./enqueue.ts";
import { takeOver } from "./registered-source.ts";
import { Job, Priority, requirePriority, WorkerContract } from "./schema.ts";

const StorageKey = Text(900);
const Provider = v.picklist(["managed", "external_serve"], "must be managed or external_serve");
const ManifestUrl = v.pipe(
  Text(2000),
  v.check((url) => URL.canParse(url) && new URL(url).protocol === "https:", "must be an https address"),
  v.check((url) => URL.canParse(url) && new URL(url).username === "", "must hold no user name"),
);

export const AssetWrite = v.object({
  tenant_id: Id,
  video_asset: v.object(
    {
      title: Title,
      input_status: InputStatus,
      playback_status: PlaybackStatus,
      source_bytes: ByteCount,
      storage_bytes: ByteCount,
      duration_seconds: v.pipe(
        v.number("must be a number"),
        v.finite("must be a number"),
        v.minValue(0, "must not be negative"),
      ),
      source_key: StorageKey,
      manifest_path: v.optional(v.nullable(StorageKey)),
      description: v.optional(Description),
      collection_id: v.optional(v.nullable(Id)),
      external_id: v.optional(ExternalId),
      playback_policy: v.optional(PlaybackPolicy),
      tags: v.optional(Tags, {}),
      original_filename: v.optional(v.nullable(Name(500))),
      relative_path: v.optional(v.nullable(Name(1000))),
      source_sha256: v.optional(v.nullable(Sha256)),
      priority: v.optional(Priority, 0),
      early_playback: v.nullish(v.boolean("must be true or false")),
      provider: v.optional(Provider, "managed"),
      manifest_url: v.optional(v.nullable(ManifestUrl)),
    },
    "must be an object",
  ),
});
type AssetToRegister = v.InferOutput<typeof AssetWrite>;
export const CreatedAsset = v.object({
  asset: Asset,
  transcoding_job: v.nullable(Job),
  worker_contract: v.pipe(v.nullable(WorkerContract), v.description("Without a lease: only a claim grants one")),
});

/** Bytes of the source that storage holds, null where it holds none, and of a source that lies elsewhere. 404 and 422 as for `createAsset`. No transaction waits for it. */
export async function bytesHeld(app: App, caller: Caller, { tenant_id, video_asset }: AssetToRegister) {
  const tenant = await requireTenant(app.db, caller, tenant_id);
  // An opaque reference. It may look like a key of ours, of any tenant, and must never be used as one.
  if (video_asset.provider === "external_serve") return null;
  requireKey("source_key", video_asset.source_key, `tenants/${tenant.id}/`);
  return (await app.objects?.head(video_asset.source_key))?.bytes ?? null;
}

/**
 * A registered asset, with the statuses that were given, and its job. None is queued for media that lie at a customer's
 * own CDN. Where storage holds the source, its size counts (`heldBytes`) and not the one that was told. 404 for a tenant
 * that is not the caller's, 422 for keys outside of the tenant's prefix.
 */
export async function createAsset(
  tx: Db,
  app: App,
  caller: Caller,
  { tenant_id, video_asset: given, heldBytes }: AssetToRegister & { heldBytes: number | null },
): Promise<{ asset: AssetRow; job: JobRow | null }> {
  const tenant = await requireTenant(tx, caller, tenant_id);
  const sourceBytes = heldBytes ?? given.source_bytes;
  // Media that lie beside the source stay what they were told to be.
  const storageBytes =
    heldBytes === null ? given.storage_bytes : heldBytes + Math.max(0, given.storage_bytes - given.source_bytes);
  // It opens no upload: these bytes are stored already.
  requireStored(app, tenant, storageBytes);
  const prefix = `tenants/${tenant.id}/`;
  const isExternal = given.provider === "external_serve";
  if (!isExternal) requireKey("source_key", given.source_key, prefix);
  const manifestPath = given.manifest_path ?? null;
  if (manifestPath !== null) requireKey("manifest_path", manifestPath, prefix);
  const manifestUrl = given.manifest_url ?? null;
  if (isExternal && manifestUrl === null) invalid("video_asset.manifest_url", "is required with external_serve");
  if (!isExternal && manifestUrl !== null) invalid("video_asset.manifest_url", "is for external_serve alone");
  if (isExternal && given.playback_policy === "signed")
    invalid(
      "video_asset.playback_policy",
      "must be public with external_serve: vodbox cannot protect what it does not serve",
    );
  if (given.external_id !== undefined) await requireFreeExternalId(tx, tenant.id, given.external_id);
  const now = app.clock.now();
  const asset = await tx
    .insert(assets)
    .values({
      tenantId: tenant.id,
      externalId: given.external_id ?? newExternalId(),
      title: given.title,
      description: given.description ?? null,
      collectionId: await ownCollection(tx, tenant.id, given.collection_id ?? null),
      inputStatus: given.input_status,
      playbackStatus: given.playback_status,
      playbackPolicy: isExternal ? "public" : (given.playback_policy ?? tenant.defaultPlaybackPolicy),
      provider: given.provider,
      manifestUrl,
      sourceBytes,
      storageBytes,
      durationSeconds: given.duration_seconds,
      sourceKey: given.source_key,
      sourceSha256: given.source_sha256 ?? null,
      originalFilename: given.original_filename ?? null,
      relativePath: given.relative_path ?? null,
      manifestPath,
      mediaPrefix: manifestPath && folderOf(manifestPath, prefix),
      tags: given.tags,
      priority: requirePriority(caller, "video_asset.priority", given.priority),
      earlyPlayback: given.early_playback ?? app.config.early_playback,
      readyAt: given.playback_status === "ready" ? now : null,
      createdAt: now,
      updatedAt: now,
    })
    .returning()
    .get();
  await addUsage(tx, tenant.id, { storageBytes }, now);
  if (heldBytes !== null) await takeOver(tx, app, asset);
  return { asset, job: isExternal ? null : await queueJob(tx, app, asset) };
}

function requireKey(field: string, key: string, prefix: string): void {
  const name = `video_asset.${field}`;
  if (!key.startsWith(prefix)) invalid(name, `must lie under ${prefix}`);
  try {
    checkKey(key);
  } catch (error) {
    invalid(name, (error as Error).message);
  }
}

/** What may be served of a manifest's neighbours: its folder. Not all of the tenant's things, and no sources. */
function folderOf(manifest: string, prefix: string): string {
  const folder = manifest.slice(0, manifest.lastIndexOf("/") + 1);
  if (folder === prefix || folder.startsWith(`${prefix}sources/`))
    invalid("video_asset.manifest_path", `must lie in a folder of its own under ${prefix}`);
  return folder;
}

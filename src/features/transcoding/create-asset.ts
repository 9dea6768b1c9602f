import * as v from "valibot";
import type { App } from "#app.ts";
import { invalid, newExternalId } from "#lib/base";
import { ASSET_PROVIDERS } from "#model/enums.ts";
import { folderOf, isBelow, ownerOf, tenantPrefix } from "#model/object-keys.ts";
import type { Caller } from "#platform/http/caller.ts";
import { ByteCount, Name, oneOf, Sha256, Text } from "#platform/http/schemas.ts";
import { ASSET_TEXTS } from "#protocol/asset-fields.ts";
import { WorkerContract } from "#protocol/contract.ts";
import { describedAs } from "#protocol/fields.ts";
import {
  CollectionId,
  DurationSeconds,
  ManifestPath,
  ManifestUrlField,
  OriginalFilename,
  RelativePath,
  SourceBytes,
  SourceKey,
  SourceSha256,
  StorageBytes,
  TenantIdFromClient,
} from "#protocol/record-fields.ts";
import type { Db } from "#storage/db/open.ts";
import type { AssetRow, JobRow } from "#storage/db/schema.ts";
import { checkKey } from "#storage/objects/keys.ts";
import { possiblePolicy } from "../assets/change.ts";
import { ownCollection, requireFreeExternalId } from "../assets/queries.ts";
import { Asset, creationEntries, InputStatus, PlaybackStatus } from "../assets/schema.ts";
import { insertAsset } from "../assets/stored-bytes.ts";
import { textColumns } from "../assets/texts.ts";
import { requireTenant } from "../tenants/queries.ts";
import { requireStored } from "../tenants/quota.ts";
import { profileFor } from "./encoding-profile.ts";
import { queueJob } from "./lifecycle/queue.ts";
import { transferSource } from "./registered-source.ts";
import { Job, Priority, requirePriority } from "./schema.ts";

const StorageKey = Text(900);
const Provider = oneOf(ASSET_PROVIDERS);
const ManifestUrl = v.pipe(
  Text(2000),
  v.check((url) => URL.canParse(url) && new URL(url).protocol === "https:", "must be an https URL"),
  v.check((url) => URL.canParse(url) && new URL(url).username === "", "must not contain a user name"),
);

export const AssetWrite = v.object({
  tenant_id: TenantIdFromClient,
  video_asset: v.pipe(
    v.object(
      {
        ...creationEntries,
        title: ASSET_TEXTS.title.input,
        input_status: InputStatus,
        playback_status: PlaybackStatus,
        source_bytes: describedAs(SourceBytes, ByteCount),
        storage_bytes: describedAs(StorageBytes, ByteCount),
        duration_seconds: describedAs(
          DurationSeconds,
          v.pipe(v.number("must be a number"), v.finite("must be a number"), v.minValue(0, "must not be negative")),
        ),
        source_key: describedAs(SourceKey, StorageKey),
        manifest_path: describedAs(ManifestPath, v.optional(v.nullable(StorageKey))),
        collection_id: v.optional(v.nullable(CollectionId)),
        original_filename: describedAs(OriginalFilename, v.optional(v.nullable(Name(500)))),
        relative_path: describedAs(RelativePath, v.optional(v.nullable(Name(1000)))),
        source_sha256: describedAs(SourceSha256, v.optional(v.nullable(Sha256))),
        priority: v.optional(Priority, 0),
        early_playback: v.pipe(
          v.nullish(v.boolean("must be true or false")),
          v.description("Whether it may be playable before it is encoded"),
        ),
        provider: v.pipe(
          v.optional(Provider, "managed"),
          v.description("Where the media are: `managed` by this service, or `external_serve`"),
        ),
        manifest_url: describedAs(ManifestUrlField, v.optional(v.nullable(ManifestUrl))),
      },
      "must be an object",
    ),
    v.description("Fields of the asset"),
  ),
});
type AssetToRegister = v.InferOutput<typeof AssetWrite>;
export const CreatedAsset = v.object({
  asset: v.pipe(Asset, v.description("The asset")),
  transcoding_job: v.pipe(v.nullable(Job), v.description("The job; null without one")),
  worker_contract: v.pipe(v.nullable(WorkerContract), v.description("Without a lease: only a claim grants one")),
});

/**
 * Size of a source in storage; null for a source that storage does not have or that is external. Throws 404 and 422 as
 * `createAsset`. Called outside of the transaction.
 */
export async function storedSourceBytes(app: App, caller: Caller, { tenant_id, video_asset }: AssetToRegister) {
  const tenant = await requireTenant(app.db, caller, tenant_id);
  // An opaque reference. It may look like a key of ours, of any tenant, and must never be used as one.
  if (video_asset.provider === "external_serve") return null;
  requireKey("source_key", video_asset.source_key, tenantPrefix(tenant.id));
  return (await app.objects?.head(video_asset.source_key))?.bytes ?? null;
}

/**
 * Registers an asset with the given statuses and queues its job. No job is queued for media on a customer's own CDN.
 * When storage has the source, its actual size (`heldBytes`) replaces the declared one. Throws 404 for a tenant that is
 * not the caller's, 422 for keys outside of the tenant's prefix.
 */
export async function createAsset(
  tx: Db,
  app: App,
  caller: Caller,
  { tenant_id, video_asset: given, heldBytes }: AssetToRegister & { heldBytes: number | null },
): Promise<{ asset: AssetRow; job: JobRow | null }> {
  const tenant = await requireTenant(tx, caller, tenant_id);
  const sourceBytes = heldBytes ?? given.source_bytes;
  // Media that were registered with the source keep their status.
  const storageBytes =
    heldBytes === null ? given.storage_bytes : heldBytes + Math.max(0, given.storage_bytes - given.source_bytes);
  // No upload is created: the bytes are stored already.
  requireStored(app, tenant, storageBytes);
  const prefix = tenantPrefix(tenant.id);
  const isExternal = given.provider === "external_serve";
  if (!isExternal) requireKey("source_key", given.source_key, prefix);
  const manifestPath = given.manifest_path ?? null;
  if (manifestPath !== null) requireKey("manifest_path", manifestPath, prefix);
  const manifestUrl = given.manifest_url ?? null;
  if (isExternal && manifestUrl === null) invalid("video_asset.manifest_url", "is required with external_serve");
  if (!isExternal && manifestUrl !== null) invalid("video_asset.manifest_url", "is only allowed with external_serve");
  if (given.playback_policy !== undefined) possiblePolicy(given, given.playback_policy);
  if (given.external_id !== undefined) await requireFreeExternalId(tx, tenant.id, given.external_id);
  const asset = await insertAsset(tx, app, {
    tenantId: tenant.id,
    externalId: given.external_id ?? newExternalId(),
    ...textColumns(given),
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
    mediaPrefix: manifestPath && ownFolderOf(manifestPath, prefix),
    tags: given.tags,
    priority: requirePriority(caller, "video_asset.priority", given.priority),
    earlyPlayback: given.early_playback ?? tenant.earlyPlayback ?? app.config.early_playback,
    encodingProfile: await profileFor(tx, tenant, given.encoding_profile),
    readyAt: given.playback_status === "ready" ? app.clock.now() : null,
  });
  if (heldBytes !== null) await transferSource(tx, app, asset);
  return { asset, job: isExternal ? null : (await queueJob(tx, app, asset, { silently: true })).job };
}

function requireKey(field: string, key: string, prefix: string): void {
  const name = `video_asset.${field}`;
  if (!isBelow(prefix, key)) invalid(name, `must be under ${prefix}`);
  try {
    checkKey(key);
  } catch (error) {
    invalid(name, (error as Error).message);
  }
}

/**
 * The prefix of files that may be served with a manifest: its directory, not all of the tenant's objects, and no
 * sources.
 */
function ownFolderOf(manifest: string, prefix: string): string {
  const folder = folderOf(manifest);
  if (folder === prefix || ownerOf(folder)?.area === "sources")
    invalid("video_asset.manifest_path", `must be in its own directory under ${prefix}`);
  return folder;
}

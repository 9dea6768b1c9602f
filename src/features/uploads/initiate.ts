import type * as v from "valibot";
import type { App } from "#app.ts";
import { invalid, newExternalId } from "#lib/base";
import { newSourceKey } from "#model/object-keys.ts";
import type { Caller } from "#platform/http/caller.ts";
import type { Db } from "#storage/db/open.ts";
import { type AssetRow, type UploadRow, uploads } from "#storage/db/schema.ts";
import { ownCollection, requireFreeExternalId } from "../assets/queries.ts";
import { insertAsset } from "../assets/stored-bytes.ts";
import { textColumns } from "../assets/texts.ts";
import { canonicalCaptions } from "../subtitles/caption-request.ts";
import { requireTenant } from "../tenants/queries.ts";
import { requireMinutes, requireStorage } from "../tenants/quota.ts";
import { profileFor } from "../transcoding/encoding-profile.ts";
import { requirePriority } from "../transcoding/schema.ts";
import type { Initiate } from "./schema.ts";

/** A pending upload and its draft asset. */
export async function initiate(
  tx: Db,
  app: App,
  caller: Caller,
  body: v.InferOutput<typeof Initiate>,
  how: Pick<UploadRow, "mode" | "partSize"> = { mode: "put", partSize: null },
): Promise<{ upload: UploadRow; asset: AssetRow }> {
  const now = app.clock.now();
  const tenant = await requireTenant(tx, caller, body.tenant_id);
  if (body.bytes_expected > app.config.max_upload_bytes)
    invalid("bytes_expected", `must be at most ${app.config.max_upload_bytes}`);
  // Checked before bytes are sent; the quota is checked again when they arrive. A source that the server fetches has at
  // least one byte; its size is known when it is fetched.
  requireStorage(app, tenant, Math.max(1, body.bytes_expected));
  await requireMinutes(tx, app, tenant);
  if (body.external_id !== undefined) await requireFreeExternalId(tx, tenant.id, body.external_id);
  const objectKey = newSourceKey(tenant.id, body.filename);
  const asset = await insertAsset(tx, app, {
    tenantId: tenant.id,
    externalId: body.external_id ?? newExternalId(),
    ...textColumns({ ...body, title: body.title ?? titleOf(body.filename) }),
    collectionId: await ownCollection(tx, tenant.id, body.collection_id ?? null),
    inputStatus: "pending",
    playbackStatus: "draft",
    playbackPolicy: body.playback_policy ?? tenant.defaultPlaybackPolicy,
    sourceKey: objectKey,
    sourceSha256: body.sha256 ?? null,
    originalFilename: body.filename,
    relativePath: body.relative_path ?? null,
    width: body.source_width ?? null,
    height: body.source_height ?? null,
    tags: body.tags,
    priority: requirePriority(caller, "priority", body.priority),
    earlyPlayback: body.early_playback ?? tenant.earlyPlayback ?? app.config.early_playback,
    encodingProfile: await profileFor(tx, tenant, body.encoding_profile),
  });
  const upload = await tx
    .insert(uploads)
    .values({
      tenantId: tenant.id,
      assetId: asset.id,
      filename: body.filename,
      contentType: body.content_type,
      bytesExpected: body.bytes_expected,
      objectKey,
      sourceWidth: body.source_width ?? null,
      sourceHeight: body.source_height ?? null,
      captions: canonicalCaptions(body.captions),
      captionsRequired: body.captions_required,
      captionLabels: body.caption_labels,
      ...how,
      expiresAt: now + app.config.upload_ttl_seconds * 1000,
      createdAt: now,
      updatedAt: now,
    })
    .returning()
    .get();
  return { upload, asset };
}

/** The title of a video that has none: the name of its file without the extension. */
export function titleOf(filename: string): string {
  const base = filename.split(/[\\/]/).at(-1) ?? filename;
  return base.replace(/\.[A-Za-z0-9]{1,8}$/, "").trim() || base.trim() || filename.trim();
}

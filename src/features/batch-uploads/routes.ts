import { sql } from "drizzle-orm";
import { notFound } from "#lib/base";
import { batchesPrefix, batchPrefix, newKeyName } from "#model/object-keys.ts";
import { batchToken } from "#platform/http/batch-token.ts";
import { route } from "#platform/http/route.ts";
import { storageOf } from "#platform/http/storage.ts";
import { requireFewerRows } from "#platform/limits/row-limit.ts";
import { Batch, CreatedBatch, DesktopStorage, NewBatch } from "#protocol/batch.ts";
import { uploadBatches } from "#storage/db/schema.ts";
import { requireTenant } from "../tenants/queries.ts";
import { checkManifest } from "./check.ts";
import { cancelBatch } from "./close.ts";
import { commitManifest } from "./commit.ts";
import { MAX_MANIFEST_BYTES, Manifest, Preview } from "./manifest-schema.ts";
import { getBatch, requireOpen } from "./queries.ts";
import { BatchParams, CommittedBatch, DEFAULT_LEASE_SECONDS, StorageQuery, storageInfo, toBatch } from "./schema.ts";

/** Batches of a tenant. A new one replaces the oldest that has ended. */
const MAX_BATCHES = 10_000;
const base = "/api/v1/ingest_batches";
const shared = { scope: "assets:write", tag: "Ingest batches" } as const;
const off = { 503: ["storage_not_configured"] };
const busyOrOff = { 503: ["storage_not_configured", "busy"] };

export const batchRoutes = [
  route({
    ...shared,
    method: "GET",
    path: `${base}/desktop_storage`,
    operationId: "getDesktopStorage",
    summary: "Get the storage target and its limits for desktop uploaders",
    query: StorageQuery,
    responses: { 200: DesktopStorage },
    errors: { 404: ["not_found"], ...off },
    async handle({ app, caller, query }) {
      const { id } = await requireTenant(app.db, caller, query.tenant_id);
      return storageInfo(app, id, batchesPrefix(id));
    },
  }),
  route({
    ...shared,
    limit: "uploads",
    method: "POST",
    path: base,
    operationId: "createBatch",
    summary: "Create a batch upload for media that is already encoded",
    body: NewBatch,
    // The token is derived again for a repeated request.
    idempotent: {
      secretFields: ["lease_token"],
      restore: async ({ app, caller }, body) => {
        const batch = await getBatch(app.db, caller, (body as { id: number }).id);
        return batch ? { ...(body as object), lease_token: batchToken(app, batch) } : body;
      },
    },
    responses: { 201: CreatedBatch },
    errors: { 404: ["not_found"], 422: ["batch_limit_reached", "idempotency_key_reused"], ...off },
    async handle({ app, caller, body, commit }) {
      storageOf(app);
      return commit(async (tx) => {
        const tenant = await requireTenant(tx, caller, body.tenant_id);
        await requireFewerRows(tx, {
          table: "ingest_batches",
          where: sql`tenant_id = ${tenant.id}`,
          max: MAX_BATCHES,
          ended: sql`status <> 'open' AND swept_at IS NOT NULL`,
          code: "batch_limit_reached",
          message: `A tenant has at most ${MAX_BATCHES} batches; commit or cancel open ones.`,
        });
        const now = app.clock.now();
        const leaseSeconds = body.expires_in ?? DEFAULT_LEASE_SECONDS;
        const batch = await tx
          .insert(uploadBatches)
          .values({
            tenantId: tenant.id,
            name: body.name ?? null,
            folder: newKeyName(),
            leaseSeconds,
            expiresAt: now + leaseSeconds * 1000,
            createdAt: now,
            updatedAt: now,
          })
          .returning()
          .get();
        return { ...toBatch(app, batch, batchPrefix(batch)), lease_token: batchToken(app, batch) };
      });
    },
  }),
  route({
    ...shared,
    batchToken: true,
    method: "GET",
    path: `${base}/:id`,
    operationId: "getBatch",
    summary: "Get a batch upload",
    params: BatchParams,
    responses: { 200: Batch },
    errors: off,
    async handle({ app, caller, params }) {
      const batch = (await getBatch(app.db, caller, params.id)) ?? notFound("batch");
      return toBatch(app, batch, batchPrefix(batch));
    },
  }),
  route({
    ...shared,
    batchToken: true,
    limit: "uploads",
    method: "POST",
    path: `${base}/:id/manifest/preview`,
    expensive: "preview",
    operationId: "previewManifest",
    summary: "Validate a manifest without committing it",
    params: BatchParams,
    body: Manifest,
    maxBodyBytes: MAX_MANIFEST_BYTES,
    responses: { 200: Preview },
    errors: { 409: ["batch_conflict"], ...busyOrOff },
    async handle({ app, caller, params, body, signal }) {
      storageOf(app);
      const batch = (await getBatch(app.db, caller, params.id)) ?? notFound("batch");
      requireOpen(batch, app.clock.now());
      const { faults, assets } = await checkManifest(app, batch, body, signal);
      return {
        valid: faults.length === 0,
        errors: faults,
        assets: assets.map((asset, index) =>
          "faults" in asset
            ? {
                index,
                title: asset.title,
                valid: false,
                duration_seconds: null,
                object_count: 0,
                storage_bytes: 0,
                renditions: [],
              }
            : {
                index,
                title: asset.given.title,
                valid: !faults.some(({ path }) => path.startsWith(`assets[${index}]`)),
                duration_seconds: asset.durationSeconds,
                object_count: asset.needed.size,
                storage_bytes: [...asset.needed.values()].reduce((sum, bytes) => sum + bytes, asset.sourceBytes),
                renditions: asset.renditions.map(({ name, width, height, bandwidth, codecs, playlist_path }) => ({
                  name,
                  width,
                  height,
                  bandwidth,
                  codecs,
                  playlist_path,
                })),
              },
        ),
      };
    },
  }),
  route({
    ...shared,
    batchToken: true,
    limit: "uploads",
    method: "POST",
    path: `${base}/:id/manifest/commit`,
    expensive: "commit",
    operationId: "commitManifest",
    summary: "Commit a manifest: create all of its assets, or none",
    params: BatchParams,
    body: Manifest,
    maxBodyBytes: MAX_MANIFEST_BYTES,
    responses: { 200: CommittedBatch },
    errors: {
      403: ["quota_exceeded"],
      409: ["batch_conflict"],
      422: ["invalid_manifest", "document_too_complex"],
      ...busyOrOff,
    },
    handle: ({ app, caller, params, body, signal }) => {
      storageOf(app);
      return commitManifest(app, caller, params.id, body, signal);
    },
  }),
  route({
    ...shared,
    batchToken: true,
    method: "POST",
    path: `${base}/:id/cancel`,
    operationId: "cancelBatch",
    summary: "Cancel a batch upload and delete its uploads",
    params: BatchParams,
    responses: { 200: Batch },
    errors: { 409: ["batch_conflict"], ...off },
    async handle({ app, caller, params }) {
      storageOf(app);
      const batch = await cancelBatch(app, caller, params.id);
      return toBatch(app, batch, batchPrefix(batch));
    },
  }),
];

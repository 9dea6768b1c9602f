import { audioTracks, captionJobs } from "#storage/db/schema.ts";
import type { TestApp } from "./app.ts";
import { leased } from "./batches.ts";
import { subtitled } from "./subtitles.ts";
import { film } from "./views.ts";

/** Part of everything that the other tenant has written. */
export const THEIRS = "theirs-3f1c";

/** An audio track that is ready; encoding one needs a worker. */
async function insertedAudio(app: TestApp, ids: { tenantId: number; assetId: number }) {
  const values = { ...ids, name: THEIRS, role: "dub", status: "ready", createdAt: 1, updatedAt: 1 } as const;
  return app.opened.app.write(async (tx) => tx.insert(audioTracks).values(values).returning().get());
}

/** Captions that are being generated; that needs a worker. */
async function insertedCaptions(app: TestApp, ids: { tenantId: number; assetId: number; subtitleId: number }) {
  const values = { ...ids, status: "running", availableAt: 1, createdAt: 1, updatedAt: 1 } as const;
  return app.opened.app.write(async (tx) => tx.insert(captionJobs).values(values).returning().get());
}

/**
 * Creates one of each resource for a tenant. `paths`: for a prefix of a route's path, its parameters that name the tenant's
 * resources.
 */
export async function foreignResources(app: TestApp, tenantId: number) {
  const key = await app.key(tenantId);
  const upload = await app.as(key).initiateUpload({
    filename: `${THEIRS}.mp4`,
    bytes_expected: 3,
    description: THEIRS,
    tags: { THEIRS },
    external_id: THEIRS,
  });
  await app.call("PUT", upload.body.upload_url, { raw: "abc" });
  const completed = await app.as(key).completeUpload(upload.body.id, { bytes_received: 3 });
  const folder = await app
    .as(key)
    .createCollection({ tenant_id: tenantId, collection: { name: THEIRS, slug: "theirs" } });
  const keys = await app.as(key).listApiKeys();
  const signer = await app.as(key).createSigningKey({ name: THEIRS, algorithm: "EdDSA" });
  const theirs = `/api/v1/assets/${completed.body.asset.id}`;
  const track = await app.call("POST", `${theirs}/tracks`, {
    key,
    body: { kind: "scene", name: THEIRS, cues: [] },
  });
  const subtitle = await subtitled(app, key, completed.body.asset.id, { label: THEIRS });
  const hook = await app.as(key).createWebhook({ url: "https://example.com/", description: THEIRS });
  const sent = await app.as(key).testWebhook(hook.body.id);
  const live = await app.as(key).createChannel({ channel: "theirs", name: THEIRS });
  const target = await app
    .as(key)
    .createSimulcastTarget(live.body.id, { url: "rtmp://example.com/app", stream_key: THEIRS, name: THEIRS });
  const batch = await leased(app, key, { name: THEIRS });
  const batchUpload = await batch.want(`${THEIRS}.m4s`, "abc", { multipart: true });
  // Assets that are not ready are not counted.
  const { id: asset_id } = await film(app, tenantId);
  await app.as(key).updateAsset(asset_id, { video_asset: { title: THEIRS } });
  await app.as().recordPlaybackEvents({ asset_id, session_id: THEIRS, viewer_id: THEIRS, event: "play" });
  await app.runTask("record-views");
  const { body: user } = await app.as({ admin: app.admin }).createTenantUser({
    tenant_id: tenantId,
    email: `${THEIRS}@example.com`,
    name: THEIRS,
    role: "viewer",
    password: "their secret",
  });
  const { body: invitation } = await app
    .as({ admin: app.admin })
    .createInvitation({ tenant_id: tenantId, email: `invited-${THEIRS}@example.com`, role: "viewer" });
  const audio = await insertedAudio(app, { tenantId, assetId: asset_id });
  const texts = { tenantId, assetId: completed.body.asset.id, subtitleId: subtitle.id };
  const captions = await insertedCaptions(app, texts);
  const share = await app.call("POST", `${theirs}/shares`, { key, body: { name: THEIRS } });
  const code = new URL(share.body.url).pathname.slice("/s/".length);
  const file = await app.call("POST", `${theirs}/static_renditions`, { key, body: { name: "highest" } });
  const restriction = await app.as(key).createPlaybackRestriction({ allowed_domains: [] });
  const moved = await app.as(key).createImportRun({ provider: "folder", source: THEIRS, total: 1 });
  const paths = {
    "/api/v1/import_runs/:id": String(moved.body.id),
    "/api/v1/analytics/viewers/:viewer_id": THEIRS,
    "/api/v1/assets/:id/static_renditions/:rendition_id": `${completed.body.asset.id}/static_renditions/${file.body.id}`,
    "/api/v1/playback_restrictions/:id": String(restriction.body.id),
    "/api/v1/assets/:id/audio_tracks/:track_id": `${asset_id}/audio_tracks/${audio?.id}`,
    "/api/v1/audio_track_jobs/:id": String(audio?.id),
    "/api/v1/caption_jobs/:id": String(captions?.id),
    "/api/v1/assets/:id/shares/:share_id": `${completed.body.asset.id}/shares/${share.body.id}`,
    "/s/:code": code,
    "/embed/s/:code": code,
    "/api/v1/users/invitations/:id": String(invitation.id),
    "/api/v1/users/:id": String(user.id),
    "/api/v1/webhooks/:id/deliveries/:delivery_id": `${hook.body.id}/deliveries/${sent.body.id}`,
    "/api/v1/webhooks/:id": String(hook.body.id),
    "/api/v1/ingest_batches/:id/uploads/:upload_id/proxy_parts/:part_number": `${batch.batch.id}/uploads/${batchUpload.body.id}/proxy_parts/1`,
    "/api/v1/ingest_batches/:id/uploads/:upload_id/parts/:part_number": `${batch.batch.id}/uploads/${batchUpload.body.id}/parts/1`,
    "/api/v1/ingest_batches/:id/uploads/:upload_id": `${batch.batch.id}/uploads/${batchUpload.body.id}`,
    "/api/v1/ingest_batches/:id": String(batch.batch.id),
    "/api/v1/assets/:video_asset_id/subtitles/:id": `${completed.body.asset.id}/subtitles/${subtitle.id}`,
    "/api/v1/assets/:video_asset_id/tracks/:id": `${completed.body.asset.id}/tracks/${track.body.id}`,
    "/api/v1/assets/:video_asset_id": String(completed.body.asset.id),
    "/api/v1/assets/:id": String(completed.body.asset.id),
    "/api/v1/collections/:id": String(folder.body.id),
    "/api/v1/uploads/tus/:id": String(upload.body.id),
    "/api/v1/uploads/:id": String(upload.body.id),
    "/api/v1/transcoding_jobs/:id/tasks/:task_id": `${completed.body.transcoding_job.id}/tasks/1`,
    "/api/v1/transcoding_jobs/:id": String(completed.body.transcoding_job.id),
    "/api/v1/api_keys/:id": String(keys.body[0].id),
    "/api/v1/signing_keys/:id": String(signer.body.id),
    "/api/v1/live/channels/:id/targets/:target_id": `${live.body.id}/targets/${target.body.id}`,
    "/api/v1/live/channels/:id": String(live.body.id),
    "/api/v1/playback/:id": completed.body.asset.external_id,
    "/api/v1/admin/tenants/:ref": String(tenantId),
    "/api/v1/admin/tokens/:name": "nothing",
    "/api/v1/admin/users/:ref": "nobody@example.com",
    "/live/:channel": "theirs",
    "/watch/live/:channel": "theirs",
    "/embed/live/:channel": "theirs",
    "/media/:id": completed.body.asset.external_id,
    "/watch/:id": completed.body.asset.external_id,
    "/embed/:id": completed.body.asset.external_id,
  };
  return { paths: paths as Record<string, string>, key, batch };
}

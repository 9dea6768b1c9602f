import { expect, test } from "vitest";
import { testApp } from "#test/support/app.ts";
import { leased, tinyAsset } from "#test/support/batches.ts";
import type { CallOptions } from "#test/support/client.ts";
import { expectError } from "#test/support/error.ts";
import { uploaded } from "#test/support/flow.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { subtitled, subtitleForm, VTT } from "#test/support/subtitles.ts";

test("with storage disabled every route that needs it is 503, for existing resources", async () => {
  const folder = emptyFolder();
  const first = await testApp({}, folder);
  const key = await first.key((await first.tenant()).id);
  const { asset } = await uploaded(first, key);
  const track = await subtitled(first, key, asset.id);
  const initiate = async (way: string) =>
    (await first.call("POST", `/api/v1/uploads/${way}`, { key, body: { filename: "a.mp4", bytes_expected: 3 } })).body;
  const single = await initiate("initiate");
  const parted = await initiate("initiate_multipart");
  const tusHeaders = { "tus-resumable": "1.0.0" };
  const tus = await first.call("POST", "/api/v1/uploads/tus", {
    key,
    headers: { ...tusHeaders, "upload-length": "3" },
  });
  const { path: batch, want } = await leased(first, key);
  const batchUpload = async (mode: string) => `uploads/${(await want(mode, "abc", { mode })).body.id}`;
  const put = await batchUpload("put");
  const proxy = await batchUpload("proxy");
  const multipart = await batchUpload("multipart");
  const channel = await first.as(key).createChannel({ channel: "stage" });
  first.opened.beginStop();
  await first.opened.close();

  const off = await testApp({ storage: "none" }, folder);
  const three = { bytes_received: 3 };
  const registered = {
    title: "A",
    input_status: "uploaded",
    playback_status: "draft",
    source_key: asset.source_key,
    source_bytes: 18,
    storage_bytes: 18,
    duration_seconds: 1,
  };
  const manifest = { body: { assets: [tinyAsset()] } };
  const chunk = { ...tusHeaders, "upload-offset": "0", "content-type": "application/offset+octet-stream" };
  const etag = { etag: '"900150983cd24fb0d6963f7d28e17f72"' };
  const tracks = "/api/v1/assets/:video_asset_id/subtitles";
  const uploads = "/api/v1/ingest_batches/:id/uploads";
  // By route pattern; then the path of the request, and its options.
  const cases: Record<string, [string, CallOptions?]> = {
    "POST /api/v1/uploads/initiate": ["", { body: { filename: "a.mp4", bytes_expected: 3 } }],
    "POST /api/v1/uploads/from_url": ["", { body: { url: "https://example.com/a.mp4" } }],
    "POST /api/v1/uploads/:id/complete": [`/api/v1/uploads/${single.id}/complete`, { body: three }],
    "POST /api/v1/uploads/initiate_multipart": ["", { body: { filename: "a.mp4", bytes_expected: 3 } }],
    "POST /api/v1/uploads/:id/sign_part": [`/api/v1/uploads/${parted.id}/sign_part`, { body: { part_number: 1 } }],
    "POST /api/v1/uploads/:id/complete_multipart": [
      `/api/v1/uploads/${parted.id}/complete_multipart`,
      { body: { ...three, parts: [{ part_number: 1, ...etag }] } },
    ],
    "POST /api/v1/uploads/:id/abort_multipart": [`/api/v1/uploads/${parted.id}/abort_multipart`],
    "POST /api/v1/uploads/tus": ["", { headers: { ...tusHeaders, "upload-length": "3" } }],
    "PATCH /api/v1/uploads/tus/:id": [tus.headers.get("location") as string, { headers: chunk, raw: "abc" }],
    "PUT /objects/**:key": [single.upload_url, { raw: "abc", headers: single.upload_headers }],
    "POST /api/v1/assets": ["", { body: { tenant_id: asset.tenant_id, video_asset: registered } }],
    "GET /api/v1/assets/:id/download": [`/api/v1/assets/${asset.id}/download`],
    "POST /api/v1/assets/:id/clips": [
      `/api/v1/assets/${asset.id}/clips`,
      { body: { start_seconds: 0, end_seconds: 1 } },
    ],
    "POST /api/v1/live/channels/:id/clips": [
      `/api/v1/live/channels/${channel.body.id}/clips`,
      { body: { last_seconds: 1 } },
    ],
    "POST /api/v1/assets/join": ["/api/v1/assets/join", { body: { asset_ids: [asset.id, asset.id] } }],
    "POST /api/v1/assets/:id/trim": [`/api/v1/assets/${asset.id}/trim`, { body: { start_seconds: 0, end_seconds: 1 } }],
    "POST /api/v1/assets/:id/audio_tracks": [
      `/api/v1/assets/${asset.id}/audio_tracks`,
      { raw: subtitleForm({ label: null, name: "Deutsch" }, "audio", "a.wav") },
    ],
    "PUT /api/v1/assets/:id/poster": [`/api/v1/assets/${asset.id}/poster`, { body: { time_seconds: 0 } }],
    [`GET ${tracks}`]: [`/api/v1/assets/${asset.id}/subtitles?include=content`],
    "GET /api/v1/assets/:id/transcript": [`/api/v1/assets/${asset.id}/transcript`],
    [`GET ${tracks}/:id`]: [`/api/v1/assets/${asset.id}/subtitles/${track.id}`],
    [`POST ${tracks}`]: [`/api/v1/assets/${asset.id}/subtitles`, { raw: subtitleForm({ language: "de" }) }],
    [`PATCH ${tracks}/:id`]: [`/api/v1/assets/${asset.id}/subtitles/${track.id}`, { body: { content: VTT } }],
    [`DELETE ${tracks}/:id`]: [`/api/v1/assets/${asset.id}/subtitles/${track.id}`],
    [`POST ${tracks}/:id/sync`]: [
      `/api/v1/assets/${asset.id}/subtitles/${track.id}/sync`,
      { body: { reference_subtitle_id: track.id } },
    ],
    "GET /api/v1/ingest_batches/desktop_storage": [""],
    "POST /api/v1/ingest_batches": ["", { body: {} }],
    "GET /api/v1/ingest_batches/:id": [batch],
    "POST /api/v1/ingest_batches/:id/manifest/preview": [`${batch}/manifest/preview`, manifest],
    "POST /api/v1/ingest_batches/:id/manifest/commit": [`${batch}/manifest/commit`, manifest],
    "POST /api/v1/ingest_batches/:id/cancel": [`${batch}/cancel`],
    [`POST ${uploads}`]: [`${batch}/uploads`, { body: { object_key: "b", bytes_expected: 1 } }],
    [`POST ${uploads}/:upload_id/parts`]: [`${batch}/${multipart}/parts`, { body: { part_number: 1 } }],
    [`POST ${uploads}/:upload_id/parts/:part_number/complete`]: [
      `${batch}/${multipart}/parts/1/complete`,
      { body: etag },
    ],
    [`POST ${uploads}/:upload_id/complete`]: [`${batch}/${put}/complete`, { body: three }],
    [`DELETE ${uploads}/:upload_id`]: [`${batch}/${put}`],
    [`PUT ${uploads}/:upload_id/proxy`]: [`${batch}/${proxy}/proxy`, { raw: "abc" }],
    [`PUT ${uploads}/:upload_id/proxy_parts/:part_number`]: [`${batch}/${proxy}/proxy_parts/1`, { raw: "abc" }],
    [`POST ${uploads}/:upload_id/proxy_complete`]: [
      `${batch}/${proxy}/proxy_complete`,
      { body: { part_count: 1, ...three } },
    ],
  };
  for (const [row, [path, options]] of Object.entries(cases)) {
    const [method = "", template = ""] = row.split(" ");
    expectError(await off.call(method, path || template, { key, ...options }), 503, "storage_not_configured", row);
  }

  // Metadata in the database, routes that need a translation or transcription service first, and the operator's own.
  const apart = [`GET ${uploads}`, `POST ${tracks}/:id/translate`, `POST ${tracks}/generate`];
  const declared = off.opened.routes
    .filter(
      ({ path, errors }) => errors?.[503]?.includes("storage_not_configured") && !path.startsWith("/api/v1/admin/"),
    )
    .map(({ method, path }) => `${method} ${path}`);
  expect(declared.filter((row) => !(row in cases) && !apart.includes(row))).toEqual([]);
  expect((await off.call("GET", `${batch}/uploads`, { key })).body).toHaveLength(3);
});

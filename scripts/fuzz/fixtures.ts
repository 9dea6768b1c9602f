import { SCOPES } from "#platform/http/caller.ts";
import type { Credential } from "./requests.ts";

export type FuzzServer = { base: string; pid: number; admin: string; worker: string };

/** The resources that a round of requests can use. */
export type Fixtures = {
  credentials: Record<Credential, Record<string, string>>;
  /** Ids by parameter, by the segment before it, or both. */
  ids: Record<string, string[]>;
  /** A batch of the own tenant, for documents that are ingested. */
  batch: { path: string; headers: Record<string, string> };
};

const JPEG = Buffer.from("ffd8ffe000104a46494600010100", "hex");
const FILES: Record<string, string | Uint8Array> = {
  "master.m3u8": "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1,RESOLUTION=64x36\nlow.m3u8\n",
  "low.m3u8": '#EXTM3U\n#EXT-X-MAP:URI="init.mp4"\n#EXTINF:4,\n1.m4s\n#EXT-X-ENDLIST\n',
  "init.mp4": "initialization",
  "1.m4s": "segment",
  "manifest.mpd":
    '<MPD type="static" mediaPresentationDuration="PT4S"><Period><AdaptationSet><Representation id="a"><SegmentTemplate media="$Number$.m4s" duration="4"/></Representation></AdaptationSet></Period></MPD>',
  "storyboard.vtt": "WEBVTT\n\n00:00.000 --> 00:04.000\nsheet.jpg#xywh=0,0,160,90\n",
  "sheet.jpg": JPEG,
};
export const MANIFEST = {
  title: "Film",
  hls: { manifest_path: "master.m3u8" },
  dash: { manifest_path: "manifest.mpd" },
  storyboard_path: "storyboard.vtt",
  thumbnail_path: "sheet.jpg",
  playback_policy: "public",
};
const SUBTITLE = "WEBVTT\n\n00:00.000 --> 00:01.000\nHello\n";

type Json = Record<string, any>;

/** A call of the API that has to succeed. */
async function call(
  base: string,
  method: string,
  path: string,
  headers: Record<string, string>,
  body?: unknown,
): Promise<Json> {
  const isForm = body instanceof FormData;
  const response = await fetch(path.startsWith("http") ? path : base + path, {
    method,
    headers: { ...headers, ...(!isForm && body !== undefined && { "content-type": "application/json" }) },
    ...(body !== undefined && { body: isForm ? body : JSON.stringify(body) }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
  return text && response.headers.get("content-type")?.includes("json") ? JSON.parse(text) : {};
}

/** Puts a file into a batch, as a desktop client does. */
export async function putFile(
  base: string,
  batch: Fixtures["batch"],
  name: string,
  bytes: string | Uint8Array,
): Promise<void> {
  const size = Buffer.byteLength(bytes);
  const wanted = { object_key: name, bytes_expected: size, content_type: "application/octet-stream" };
  const batchUpload = await call(base, "POST", `${batch.path}/uploads`, batch.headers, wanted);
  const sent = await fetch(batchUpload.upload_url, {
    method: batchUpload.upload_method,
    headers: batchUpload.upload_headers,
    body: bytes as string,
  });
  await sent.text();
  await call(base, "POST", `${batch.path}/uploads/${batchUpload.id}/complete`, batch.headers, { bytes_received: size });
}

let serial = 0;

/** New tenants with one resource of each kind, because earlier requests may have deleted, suspended or revoked any. */
export async function furnish({ base, admin, worker }: FuzzServer): Promise<Fixtures> {
  const number = ++serial;
  const asAdmin = { "x-svc-admin-token": admin };
  const tenant = async (slug: string): Promise<Json> => {
    const named = { name: slug, slug, plan_name: "enterprise", default_playback_policy: "public" };
    return call(base, "POST", "/api/v1/admin/tenants", asAdmin, named);
  };
  const keyOf = async (tenantId: number) =>
    call(base, "POST", "/api/v1/api_keys", asAdmin, { tenant_id: tenantId, scopes: SCOPES });
  const own = await tenant(`own-${number}`);
  const other = await tenant(`other-${number}`);
  // The target of the operator's routes, so that a round keeps its own tenants as long as possible.
  const target = `target-${number}`;
  await tenant(target);
  const revocable = await keyOf(own.id);
  const key = (await keyOf(own.id)).token as string;
  const otherKey = (await keyOf(other.id)).token as string;
  const ask = (method: string, path: string, body?: unknown) => call(base, method, path, { "x-api-key": key }, body);

  const batchOf = async () => {
    const made = await ask("POST", "/api/v1/ingest_batches", {});
    const path = `/api/v1/ingest_batches/${made.id}`;
    return { id: made.id, path, headers: { "x-svc-batch-token": made.lease_token as string } };
  };
  const first = await batchOf();
  const batch = await batchOf();
  for (const [name, bytes] of Object.entries(FILES)) {
    await putFile(base, first, name, bytes);
    await putFile(base, batch, name, bytes);
  }
  const committed = await call(base, "POST", `${first.path}/manifest/commit`, first.headers, { assets: [MANIFEST] });
  const [asset] = committed.assets;
  const batchUpload = await call(base, "POST", `${batch.path}/uploads`, batch.headers, {
    object_key: "open.m4s",
    bytes_expected: 3,
    content_type: "video/mp4",
    multipart: true,
  });
  const upload = await ask("POST", "/api/v1/uploads/initiate", { filename: "clip.mp4", bytes_expected: 3 });
  const form = new FormData();
  for (const [name, value] of Object.entries({ language: "en", label: "English" })) form.set(name, value);
  form.set("file", new Blob([SUBTITLE]), "a.vtt");
  const subtitle = await ask("POST", `/api/v1/assets/${asset.id}/subtitles`, form);
  const track = await ask("POST", `/api/v1/assets/${asset.id}/tracks`, { kind: "scene", name: "main", cues: [] });
  const collection = await ask("POST", "/api/v1/collections", {
    tenant_id: own.id,
    collection: { name: "C", slug: `c-${number}` },
  });
  const hook = await ask("POST", "/api/v1/webhooks", { url: "https://example.com/" });
  const channel = await ask("POST", "/api/v1/live/channels", { channel: `channel-${number}`, name: "Live" });
  const simulcast = await ask("POST", `/api/v1/live/channels/${channel.id}/targets`, {
    url: "rtmp://example.com/app",
    stream_key: "key",
  });
  const signer = await ask("POST", "/api/v1/signing_keys", { name: "K", algorithm: "EdDSA" });
  const assets = [String(asset.id), String(asset.external_id), String(upload.asset_id)];
  return {
    credentials: {
      own: { "x-api-key": key },
      other: { "x-api-key": otherKey },
      admin: asAdmin,
      worker: { "x-svc-worker-token": worker, "x-svc-job-lease-token": "x" },
      none: {},
      broken: { "x-api-key": "svc_'-- " },
    },
    ids: {
      assets,
      video_asset_id: assets,
      media: assets,
      watch: assets,
      embed: assets,
      playback: assets,
      uploads: [String(upload.id)],
      "tus/:id": [String(upload.id)],
      ingest_batches: [String(batch.id)],
      upload_id: [String(batchUpload.id)],
      subtitles: [String(subtitle.id)],
      tracks: [String(track.id)],
      collections: [String(collection.id)],
      webhooks: [String(hook.id)],
      channels: [String(channel.id)],
      targets: [String(simulcast.id)],
      live: [String(channel.channel)],
      signing_keys: [String(signer.id)],
      api_keys: [String(revocable.id)],
      transcoding_jobs: ["1", "2"],
      ref: [target],
      name: ["nothing"],
      key: ["campaign", "__proto__"],
      part_number: ["1", "2"],
      file: [
        ...[
          "master.m3u8",
          "manifest.mpd",
          "storyboard.vtt",
          "storyboard.json",
          "thumbnail.jpg",
          "thumbnail.webp",
          "animated.gif",
        ],
        ...[
          "video.mp4",
          `subtitles/${subtitle.id}.vtt`,
          `subtitles/${subtitle.id}.m3u8`,
          "~token/master.m3u8",
          "1-1/low.m3u8",
        ],
      ],
    },
    batch,
  };
}

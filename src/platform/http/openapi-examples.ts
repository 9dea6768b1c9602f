import type { Json } from "./openapi-schema.ts";

/** Example values by field name, for every schema. Other fields get an example by type. */
const SAMPLES: Record<string, unknown> = {
  id: 42,
  tenant_id: 7,
  asset_id: 42,
  video_asset_id: 42,
  collection_id: 3,
  parent_id: null,
  external_id: "vid_4mJx0Zp8QwT1sK7nRb2yVc",
  name: "Main",
  slug: "launch-films",
  channel: "launch-show",
  path: "live/launch-show",
  publisher: null,
  stream_key: "live_4mJx0Zp8QwT1sK7nRb2yVcHd6eFgAaLmNoPqStUv",
  title: "Launch film",
  description: "Shown at the product launch",
  label: "English",
  language: "en",
  captions: ["en", "pt-BR"],
  captions_live: ["en"],
  target_language: "es",
  kind: "chapter",
  email_address: "ann@example.com",
  email: "ann@example.com",
  allowed_origins: ["https://www.example.com"],
  allowed_domains: ["example.com", "*.example.com"],
  password: "correct horse battery staple",
  pairing_code: "7K3M-Q9XD",
  device_name: "Ann's laptop",
  token: "svc_4mJx0Zp8QwT1sK7nRb2yVcHd6eFgAaLmNoPqStUv",
  token_type: "api_key",
  key_id: "sk_4mJx0Zp8QwT1sK7nRb2yVc",
  algorithm: "EdDSA",
  public_key:
    "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=\n-----END PUBLIC KEY-----\n",
  last_four: "StUv",
  filename: "launch.mp4",
  original_filename: "launch.mp4",
  relative_path: "2026/launch.mp4",
  content_type: "video/mp4",
  bytes: 73_400_320,
  bytes_expected: 73_400_320,
  bytes_received: 73_400_320,
  source_bytes: 73_400_320,
  storage_bytes: 161_480_704,
  duration_seconds: 61.44,
  width: 1920,
  height: 1080,
  source_width: 1920,
  source_height: 1080,
  frame_rate: 30,
  rungs: [
    { name: "1080p", width: 1920, height: 1080, max_bitrate: 6_000_000, buffer: 9_000_000, crf: 26, score: 94.2 },
    { name: "720p", width: 1280, height: 720, max_bitrate: 1_500_000, buffer: 2_250_000, crf: 28.3, score: 81.6 },
  ],
  source_key: "tenants/7/sources/9hQ2.mp4",
  manifest_path: "tenants/7/assets/42/1-1/master.m3u8",
  dash_manifest_path: "tenants/7/assets/42/1-1/manifest.mpd",
  thumbnail_path: "tenants/7/assets/42/1-1/thumbnail.jpg",
  sha256: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
  source_sha256: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
  tags: { campaign: "launch", season: 1 },
  scopes: ["assets:read"],
  expires_in: 300,
  start_seconds: 61.5,
  end_seconds: 70,
  parent_asset_id: null,
  start_ms: 0,
  end_ms: 4000,
  payload: { title: "Opening" },
  content: "WEBVTT\n\n00:00.000 --> 00:02.000\nHello.\n",
  url: "https://video.example.com/media/vid_4mJx0Zp8QwT1sK7nRb2yVc/master.m3u8",
  upload_url: "https://video.example.com/objects/tenants/7/sources/9hQ2.mp4?signature=…",
  method: "GET",
  upload_method: "PUT",
  headers: { "content-type": "video/mp4" },
  upload_headers: { "content-type": "video/mp4" },
  worker_id: "worker-1",
  stage: "encoding",
  progress: 40,
  secret: "whsec_c2lnbmluZyBzZWNyZXQgb2YgMzIgYnl0ZXMgbG9uZyE=",
  lease_token: "bat_42_7dQm0Zp8QwT1sK7nRb2yVc4mJx0Zp8QwT1sK7nRb2yVc",
  object_key: "launch/720p/1.m4s",
  playlist_path: "launch/720p/playlist.m3u8",
  event: "video.asset.ready",
  event_id: "evt_4mJx0Zp8QwT1sK7nRb2yVcHd",
  delivery_id: "whd_42",
  endpoint_id: 3,
  request_id: "req_5f0c8a52-3d5e-4c3a-9a2e-0c7f5f0d9b11",
  codecs: "avc1.640028,mp4a.40.2",
  bandwidth: 4_800_000,
  error: null,
  row: 2,
};

type Schema = Json & {
  type?: string;
  format?: string;
  enum?: unknown[];
  properties?: Record<string, Schema>;
  items?: Schema;
  minItems?: number;
  oneOf?: Schema[];
  anyOf?: Schema[];
  allOf?: Schema[];
  minimum?: number;
  nullable?: boolean;
  default?: unknown;
  $ref?: string;
};

const MAX_DEPTH = 8;

/** An example value that fits `schema`, using the field names in it. */
export function exampleOf(schema: Schema, components: Record<string, Json>, name = "", depth = 0): unknown {
  const reference = schema.$ref ?? schema.allOf?.[0]?.$ref;
  if (reference) {
    const target = components[reference.split("/").at(-1) as string] as Schema;
    // Limits the depth of recursive schemas.
    return depth > MAX_DEPTH ? null : exampleOf(target, components, name, depth + 1);
  }
  if (schema.properties) {
    return Object.fromEntries(
      Object.entries(schema.properties).map(([field, inner]) => [
        field,
        exampleOf(inner, components, field, depth + 1),
      ]),
    );
  }
  const sample = sampleOf(name, schema);
  if (sample !== undefined) return sample;
  if (schema.default !== undefined) return schema.default;
  if (schema.enum) return schema.enum[0];
  if (schema.type === "array")
    return depth > MAX_DEPTH || !schema.items
      ? []
      : Array(schema.minItems || 1).fill(exampleOf(schema.items, components, name, depth + 1));
  const choice = schema.oneOf?.[0] ?? schema.anyOf?.[0];
  if (choice) return exampleOf(choice, components, name, depth + 1);
  if (schema.nullable) return null;
  if (schema.format === "date-time") return "2026-11-20T09:30:00.000Z";
  if (schema.type === "integer" || schema.type === "number") return schema.minimum ?? 1;
  if (schema.type === "boolean") return true;
  if (schema.type === "object") return {};
  return name === "" ? "text" : name;
}

/** The example value of a field by its name; undefined when there is none of the schema's type. */
export function sampleOf(name: string, schema: Schema): unknown {
  const sample = Object.hasOwn(SAMPLES, name) ? SAMPLES[name] : undefined;
  return sample !== undefined && fits(sample, schema) ? sample : undefined;
}

function fits(sample: unknown, { type, enum: allowed, nullable, format, pattern }: Schema): boolean {
  if (sample === null) return nullable === true;
  if (allowed) return allowed.includes(sample);
  if (Array.isArray(sample)) return type === "array";
  if (typeof sample === "number") return type === "number" || type === "integer";
  if (typeof sample !== "string") return type === typeof sample || type === undefined;
  return type === "string" && format === undefined && (typeof pattern !== "string" || new RegExp(pattern).test(sample));
}

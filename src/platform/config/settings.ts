import * as v from "valibot";
import { withoutTrailing } from "#lib/base";
import { PAYMENT_KINDS, STORE_KINDS } from "#model/enums.ts";
import { CacheSetting } from "./cache-setting.ts";
import { Prices, readPrices } from "./prices.ts";
import { ReplicaSetting } from "./replica-setting.ts";
import { addresses, flag, integer, list, oneOf, rate, text, token, url, waits } from "./setting-schemas.ts";

/**
 * All settings. Environment variables (`VODBOX_` and upper case), configuration file keys, flags, `vodbox admin config`
 * and the docs are derived from this table.
 */
export type Setting = {
  schema: v.GenericSchema<unknown, unknown>;
  /** The default, written as in an environment variable; undefined: not set. */
  fallback?: string;
  secret?: boolean;
  /** Parses a text value; the setting may also be a table of the configuration file. Throws Error. */
  read?(text: string, cwd: string): unknown;
  about: string;
};

export const SETTINGS = {
  data_dir: { schema: text, fallback: "./vodbox-data", about: "directory of the database, local storage and secrets" },
  host: { schema: text, fallback: "127.0.0.1", about: "address to listen on" },
  port: { schema: integer(0, 65_535), fallback: "8080", about: "port to listen on; 0 picks a free one" },
  base_url: {
    schema: v.pipe(
      url("http:", "https:"),
      v.transform((value) => withoutTrailing(value, "/")),
    ),
    about: "public URL of the server; prefix of all absolute URLs in responses",
  },
  trusted_proxies: {
    schema: list,
    fallback: "",
    about: "reverse proxies (CIDR ranges) whose X-Forwarded-For or Forwarded header is trusted",
  },
  trust_traceparent: {
    schema: flag,
    fallback: "0",
    about:
      "1: API clients continue their own traces (`traceparent`), and decide whether they are recorded; otherwise they are links of ours",
  },
  connections_per_address: {
    schema: integer(1, 1_000_000),
    fallback: "1000",
    about:
      "open HTTP connections from one address (IPv6: /64) to one server process; trusted proxies and 127.0.0.1 are exempt",
  },
  country_header: {
    schema: v.pipe(text, v.regex(/^[\w-]{1,100}$/, "must be the name of a header"), v.toLowerCase()),
    about: "header with the viewer's country in two letters, such as cf-ipcountry; read from trusted proxies only",
  },
  tls_cert: {
    schema: text,
    about: "PEM file of the certificate chain; enables HTTPS; reloaded when it changes",
  },
  tls_key: { schema: text, about: "PEM file of the private key" },
  env: {
    schema: oneOf("production", "development"),
    fallback: "production",
    about: "development also allows simulated payments",
  },
  admin_token: { schema: token, secret: true, about: "generated at first start and stored in the data directory" },
  worker_token: { schema: token, secret: true, about: "generated at first start and stored in the data directory" },
  live_token: { schema: token, secret: true, about: "generated at first start and stored in the data directory" },
  metrics_token: { schema: token, secret: true, about: "opens /metrics and nothing else; generated at first start" },
  signing_secret: { schema: token, secret: true, about: "signs playback tokens, leases and storage URLs" },
  database_url: {
    schema: url("file:", "libsql:", "http:", "https:"),
    about: "file:<data>/vodbox.db, or a remote libSQL server",
  },
  database_auth_token: { schema: text, secret: true, about: "token of the remote libSQL server" },
  storage: {
    schema: oneOf(...STORE_KINDS, "none"),
    fallback: "local",
    about: "object storage; none disables it",
  },
  min_free_bytes: {
    schema: integer(0, Number.MAX_SAFE_INTEGER),
    fallback: "268435456",
    about: "free disk space to keep; below it writes are refused with 507",
  },
  fetch_concurrency: {
    schema: integer(1, 256),
    fallback: "8",
    about: "concurrent fetches of sources from URLs; at most 2 per tenant while other tenants wait",
  },
  fetch_min_bytes_per_second: {
    schema: integer(0, Number.MAX_SAFE_INTEGER),
    fallback: "16384",
    about: "minimum rate of a fetch, averaged over 60 s; 0 disables the limit",
  },
  ffmpeg: { schema: text, about: "path of ffmpeg; default: the bundled one, then PATH" },
  ffprobe: { schema: text, about: "path of ffprobe; default: the bundled one, then PATH" },
  early_playback: {
    schema: flag,
    fallback: "0",
    about: "1: an asset is playable within seconds, before it is encoded completely (default of uploads)",
  },
  encoder: {
    schema: oneOf("software", "nvenc", "qsv", "vaapi"),
    fallback: "software",
    about: "encoder of workers, where it supports the codec; hardware encoders need an ffmpeg that supports them",
  },
  ffmpeg_memory_bytes: {
    schema: integer(128 * 2 ** 20, Number.MAX_SAFE_INTEGER),
    about: "memory limit of one ffmpeg process; default: three quarters of the machine, at most 8 GiB",
  },
  workers: {
    schema: integer(0, 64),
    about: "local worker processes started by serve; default: one for each four processors, at least one",
  },
  live_encodes: {
    schema: integer(0, 16),
    fallback: "1",
    about: "live streams whose renditions a worker encodes at once, next to its jobs; 0: none",
  },
  processes: {
    schema: integer(1, 64),
    fallback: "1",
    about: "server processes that share the port and the data directory",
  },
  lease_seconds: {
    schema: integer(2, 86_400),
    fallback: "120",
    about: "lease of a job; workers send a heartbeat every quarter of it",
  },
  job_timeout_seconds: {
    schema: integer(0, 31 * 86_400),
    fallback: "0",
    about: "maximum duration of an attempt, then the job fails; 0: as long as it makes progress",
  },
  job_stall_seconds: {
    schema: integer(10, 31 * 86_400),
    fallback: "600",
    about: "an attempt without progress for this long is reassigned",
  },
  parallel: {
    schema: oneOf("auto", "off"),
    fallback: "auto",
    about: "auto: long sources are encoded in parts, by all workers at once; off: each source by one worker",
  },
  chunk_seconds: {
    schema: v.pipe(
      integer(8, 3600),
      v.check((seconds) => seconds % 4 === 0, "must be a multiple of 4"),
    ),
    fallback: "20",
    about: "length of the parts; shorter than two of them, a source is encoded in one run",
  },
  rtmp_port: {
    schema: integer(0, 65_535),
    about: "port for live publishers over RTMP; default: no live ingest; 0 picks a free one",
  },
  rtmps_port: {
    schema: integer(0, 65_535),
    about: "the same with TLS, with the certificate of tls_cert",
  },
  srt_port: {
    schema: integer(0, 65_535),
    about: "UDP port for live publishers over SRT; default: not received; 0 picks a free one",
  },
  srt_passphrase: {
    schema: v.pipe(
      v.string(),
      v.minLength(10, "must have at least 10 characters"),
      v.maxLength(79, "must have at most 79 characters"),
    ),
    secret: true,
    about: "encrypts SRT: publishers need the same passphrase; default: SRT without encryption",
  },
  whip_port: {
    schema: integer(0, 65_535),
    about: "port for live publishers over WHIP (WebRTC), UDP and TCP; default: not received; 0 picks a free one",
  },
  whip_addresses: {
    schema: addresses,
    fallback: "",
    about: "IP addresses at which WHIP publishers reach this server, such as the public one of a NAT; default: its own",
  },
  rtmp_connections_per_address: {
    schema: integer(1, 100_000),
    fallback: "16",
    about:
      "concurrent publishers from one address, of RTMP, of SRT and of WHIP; more behind a proxy, where all have one",
  },
  max_attempts: { schema: integer(1, 100), fallback: "5", about: "attempts before a job fails" },
  max_upload_bytes: {
    schema: integer(1, Number.MAX_SAFE_INTEGER),
    fallback: String(64 * 2 ** 30),
    about: "maximum size of a source",
  },
  body_idle_seconds: {
    schema: integer(1, 3600),
    fallback: "60",
    about: "a request whose body stalls for this long is closed; at most 20 on routes without credentials",
  },
  upload_ttl_seconds: {
    schema: integer(1, 31 * 86_400),
    fallback: "86400",
    about: "lifetime of an upload that is not completed",
  },
  s3_endpoint: { schema: url("http:", "https:"), about: "URL of the S3 server" },
  s3_bucket: {
    schema: v.pipe(text, v.regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/, "must be the name of a bucket")),
    about: "bucket",
  },
  s3_region: { schema: text, fallback: "us-east-1", about: "region" },
  s3_access_key_id: { schema: text, about: "access key" },
  s3_secret_access_key: { schema: text, secret: true, about: "secret key" },
  s3_path_style: { schema: flag, fallback: "1", about: "1: bucket in the path; 0: in the host name" },
  s3_prefix: {
    schema: v.pipe(
      text,
      v.transform((value) => withoutTrailing(value.replace(/^\/+/, ""), "/")),
      v.regex(/^[A-Za-z0-9._-]+(\/[A-Za-z0-9._-]+)*$/, "must be names of letters, digits, . _ - joined by /"),
      v.maxLength(100, "must have at most 100 characters"),
      v.check((value) => value.split("/").every((part) => part !== "." && part !== ".."), "must not contain . or .."),
    ),
    about: "prefix of all object keys, such as vodbox/production",
  },
  s3_public_url: {
    schema: url("http:", "https:"),
    about: "replaces the endpoint in URLs for clients and workers; with path style 0, the URL of the bucket",
  },
  s3_delivery: {
    schema: oneOf("redirect", "rewrite", "proxy"),
    fallback: "redirect",
    about: "delivery of segments: redirect to S3, rewrite playlists to presigned URLs, or proxy through vodbox",
  },
  replica: {
    schema: ReplicaSetting,
    about: "continuous backup of the database: s3://BUCKET/PREFIX or a directory",
  },
  replica_retention_days: {
    schema: integer(1, 3650),
    fallback: "7",
    about: "days that the replica can be restored to",
  },
  replica_s3_endpoint: {
    schema: url("http:", "https:"),
    about: "URL of the S3 server of the replica; default: s3_endpoint",
  },
  replica_s3_region: { schema: text, about: "region of the replica; default: s3_region" },
  replica_s3_access_key_id: { schema: text, about: "access key of the replica; default: s3_access_key_id" },
  replica_s3_secret_access_key: {
    schema: text,
    secret: true,
    about: "secret key of the replica; default: s3_secret_access_key",
  },
  replica_s3_path_style: { schema: flag, about: "as s3_path_style, for the replica; default: s3_path_style" },
  translate: {
    schema: oneOf("off", "libretranslate", "apertium", "deepl", "openai"),
    fallback: "off",
    about: "translation service",
  },
  translate_url: {
    schema: url("http:", "https:"),
    about: "URL of the translation service; deepl and openai have a default",
  },
  translate_key: { schema: text, secret: true, about: "API key of the translation service" },
  translate_model: { schema: text, fallback: "gpt-4o-mini", about: "model (openai)" },
  translate_timeout_seconds: {
    schema: integer(1, 600),
    fallback: "60",
    about: "timeout of one request; a whole track may take five times as long",
  },
  transcribe: {
    schema: oneOf("off", "whisper", "openai", "command"),
    fallback: "off",
    about: "speech-to-text service for captions",
  },
  transcribe_url: {
    schema: url("http:", "https:"),
    about: "URL of the service (openai); default: OpenAI, if a key is set",
  },
  transcribe_key: { schema: text, secret: true, about: "API key of the service" },
  transcribe_model: { schema: text, fallback: "whisper-1", about: "model (openai)" },
  transcribe_timeout_seconds: {
    schema: integer(1, 86_400),
    fallback: "1800",
    about: "timeout of one request (openai), which carries at most ten minutes of audio",
  },
  transcribe_command: { schema: text, about: "shell command: WAV and language or auto; prints WebVTT, SRT or JSON" },
  whisper_model: { schema: text, about: "installed model to use (whisper); default: the largest" },
  whisper_models_url: {
    schema: url("http:", "https:"),
    fallback: "https://huggingface.co/ggerganov/whisper.cpp/resolve/5359861c739e955e79d9a303bcbc70fb988958b1",
    about: "where `vodbox captions install` downloads models from; the file name is appended",
  },
  payments: { schema: oneOf("off", ...PAYMENT_KINDS), fallback: "off", about: "payment provider" },
  stripe_key: { schema: text, secret: true, about: "secret or restricted key, sk_… or rk_…" },
  stripe_webhook_secret: { schema: text, secret: true, about: "signing secret of the Stripe endpoint, whsec_…" },
  stripe_url: { schema: url("http:", "https:"), fallback: "https://api.stripe.com", about: "URL of the Stripe API" },
  paypal_client_id: { schema: text, about: "client id of the PayPal REST app" },
  paypal_client_secret: { schema: text, secret: true, about: "client secret of the PayPal REST app" },
  paypal_webhook_id: { schema: text, about: "id of the PayPal app's webhook" },
  paypal_url: {
    schema: url("http:", "https:"),
    fallback: "https://api-m.paypal.com",
    about: "URL of the PayPal API; the sandbox is https://api-m.sandbox.paypal.com",
  },
  checkout_return_url: {
    schema: url("http:", "https:"),
    about: "URL that payers return to, with order_id and outcome in the query; default: a page of vodbox",
  },
  prices: {
    schema: Prices,
    read: readPrices,
    about: "price sheet: JSON, the path of a JSON or TOML file, or a table of the configuration file",
  },
  webhook_allow_cidrs: {
    schema: list,
    fallback: "",
    about: "private CIDR ranges that webhook deliveries, source fetches and simulcast may reach",
  },
  webhook_retry_seconds: {
    schema: waits,
    fallback: "5,300,1800,7200,18000",
    about: "the five delays between delivery attempts",
  },
  rate_limit_uploads: { schema: rate, fallback: "120/60", about: "requests/seconds per tenant" },
  rate_limit_billing: { schema: rate, fallback: "30/60", about: "requests/seconds per tenant" },
  rate_limit_translate: { schema: rate, fallback: "20/60", about: "requests/seconds per tenant" },
  rate_limit_sync: { schema: rate, fallback: "20/60", about: "requests/seconds per tenant" },
  rate_limit_live: { schema: rate, fallback: "6000/60", about: "requests/seconds per client address" },
  rate_limit_device_tokens: { schema: rate, fallback: "10/60", about: "requests/seconds per client address" },
  rate_limit_session: { schema: rate, fallback: "10/60", about: "failed sign-ins/seconds per client address" },
  rate_limit_beacon: { schema: rate, fallback: "600/60", about: "requests/seconds per client address" },
  rate_limit_pictures: {
    schema: rate,
    fallback: "600/60",
    about: "images rendered on demand/seconds per client address; stored images do not count",
  },
  oidc_issuer: {
    schema: v.pipe(
      url("http:", "https:"),
      v.check((value) => isSafeIssuer(value), "must be an https:// URL; http:// is for loopback addresses only"),
    ),
    about: "issuer of an OpenID provider with which people sign in to the console",
  },
  oidc_client_id: { schema: text, about: "id of this server as a client of the provider" },
  oidc_client_secret: { schema: text, secret: true, about: "secret of the client; none: a public client" },
  oidc_tenant_claim: {
    schema: text,
    about:
      "claim, or path to it with dots, with the slug of a tenant, in which unknown people become users; default: they are refused",
  },
  oidc_role_claim: {
    schema: text,
    about: "claim, or path to it with dots, with the role of people who become users; default: viewer",
  },
  oidc_name: { schema: text, about: "name of the provider on the sign-in page; default: the issuer's host" },
  smtp_url: {
    schema: url("smtp:", "smtps:"),
    secret: true,
    about:
      "mail server, smtp://USER:PASSWORD@HOST:587 or smtps://HOST; ?requireTLS=true requires STARTTLS. Invitations and password resets are mailed",
  },
  smtp_from: { schema: text, about: "sender of mail, such as Films <films@example.com>" },
  playback_event_days: {
    schema: integer(1, 3650),
    fallback: "30",
    about: "retention of individual playback events in days; aggregates are kept",
  },
  analytics_ip: {
    schema: oneOf("none", "truncate"),
    fallback: "none",
    about: "address of viewers in analytics: none is stored, or truncate: its network, IPv4 /24 and IPv6 /48",
  },
  audit_days: { schema: integer(1, 36_500), fallback: "400", about: "retention of the audit log in days" },
  log_level: {
    schema: oneOf("trace", "debug", "info", "warn", "error", "fatal", "silent"),
    fallback: "info",
    about: "minimum level of log entries",
  },
  log_format: { schema: oneOf("pretty", "json"), about: "default: pretty on a terminal, else json" },
  mux_domain: {
    schema: v.pipe(
      v.string(),
      v.transform((domain) => domain.toLowerCase()),
      v.check(
        (domain) => URL.parse(`http://${domain}`)?.host === domain,
        "must be a domain, such as video.example.com",
      ),
    ),
    about:
      "domain of `stream.` and `image.` hosts for players that were written for Mux, as their `custom-domain`; see docs/mux.md",
  },
  segment_cache_bytes: {
    schema: integer(0, 2 ** 40),
    fallback: String(256 * 2 ** 20),
    about: "memory for cached segments",
  },
  cache: {
    schema: CacheSetting,
    fallback: "memory",
    secret: true,
    about:
      "cache of compressed playlists and of texts from S3: memory; fs or fs:/PATH, which lasts beyond a restart; redis://HOST:PORT/DB (or rediss://), which servers share, with their rate limits",
  },
  static_mp4: {
    schema: flag,
    fallback: "0",
    about: "1: also write an MP4 file, for players without HLS and DASH",
  },
  trust_shared_disk: {
    schema: flag,
    fallback: "1",
    about: "1: workers that prove to share the disk read and write it without copying",
  },
} satisfies Record<string, Setting>;

/** Tokens of the provider must not travel unencrypted, except on this machine. */
function isSafeIssuer(issuer: string): boolean {
  const { protocol, hostname } = new URL(issuer);
  return protocol === "https:" || ["localhost", "[::1]"].includes(hostname) || /^127\.\d+\.\d+\.\d+$/.test(hostname);
}

export type SettingName = keyof typeof SETTINGS;
export const envName = (name: string) => `VODBOX_${name.toUpperCase()}`;

import { isIP } from "node:net";
import * as v from "valibot";
import { withoutTrailing } from "../lib/without-trailing.ts";
import { Prices, readPrices } from "./prices.ts";

/**
 * All settings, one row each. From this table come the environment names (`VODBOX_` + upper case), the keys of the
 * configuration file, the flags, `vodbox admin config` and the docs.
 */
export type Setting = {
  schema: v.GenericSchema<unknown, unknown>;
  /** Raw default as it would stand in the environment; undefined means not set. */
  fallback?: string;
  secret?: boolean;
  /** What a text stands for; the setting may be a table of the configuration file, too. Throws an Error. */
  read?(text: string, cwd: string): unknown;
  about: string;
};

const text = v.pipe(v.string(), v.trim(), v.minLength(1, "must not be empty"));
const isRange = (range: string) => {
  const [address = "", bits, ...rest] = range.split("/");
  const widest = isIP(address) === 6 ? 128 : 32;
  return (
    rest.length === 0 &&
    isIP(address) !== 0 &&
    (bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= widest))
  );
};
const oneOf = <const T extends string[]>(...values: T) => v.picklist(values, `must be one of ${values.join(", ")}`);
const integer = (min: number, max: number) =>
  v.pipe(
    v.union([v.number(), v.string()], "must be a whole number"),
    v.transform((value) =>
      typeof value === "number" ? value : /^\s*-?\d+\s*$/.test(value) ? Number(value) : Number.NaN,
    ),
    v.integer("must be a whole number"),
    v.minValue(min, `must be at least ${min}`),
    v.maxValue(max, `must be at most ${max}`),
  );
const token = v.pipe(text, v.minLength(16, "must have at least 16 characters"));
const url = (...protocols: string[]) =>
  v.pipe(
    text,
    v.check(
      (value) => URL.canParse(value) && protocols.includes(new URL(value).protocol),
      `must be an address that starts with ${protocols.map((p) => `${p}//`).join(" or ")}`,
    ),
  );
const flag = v.pipe(
  v.union([v.boolean(), v.string()]),
  v.transform(String),
  v.picklist(["0", "1", "true", "false"], "must be 0 or 1"),
  v.transform((x) => x === "1" || x === "true"),
);
const rate = v.pipe(
  text,
  v.regex(/^\d{1,9}\/\d{1,9}$/, "must read REQUESTS/SECONDS, such as 120/60"),
  v.transform((value) => {
    const [requests = 0, seconds = 0] = value.split("/").map(Number);
    return { requests, seconds };
  }),
  v.check(
    ({ requests, seconds }) => requests > 0 && seconds > 0,
    "must allow at least one request in at least one second",
  ),
);

const items = v.pipe(
  v.union([v.string(), v.array(v.union([v.string(), v.number()]))]),
  v.transform((value) =>
    String(value)
      .split(",")
      .map((item) => item.trim())
      .filter(Boolean),
  ),
);
const list = v.pipe(
  items,
  v.check((ranges) => ranges.every(isRange), "must be a comma-separated list of CIDR ranges such as 10.0.0.0/8"),
);
const waits = v.pipe(
  items,
  v.check(
    (parts) => parts.length === 5 && parts.every((part) => /^\d{1,7}$/.test(part)),
    "must be five waits in seconds, such as 5,300,1800,7200,18000",
  ),
  v.transform((parts) => parts.map(Number)),
);

export const SETTINGS = {
  data_dir: { schema: text, fallback: "./vodbox-data", about: "database, local storage, secrets (0600)" },
  host: { schema: text, fallback: "127.0.0.1", about: "address to listen on" },
  port: { schema: integer(0, 65_535), fallback: "8080", about: "port to listen on; 0 picks a free one" },
  base_url: {
    schema: v.pipe(
      url("http:", "https:"),
      v.transform((value) => withoutTrailing(value, "/")),
    ),
    about: "what every absolute address in an answer starts with",
  },
  trusted_proxies: {
    schema: list,
    fallback: "",
    about: "proxies, as ranges such as 127.0.0.1/32, whose X-Forwarded-For or Forwarded tells the client's address",
  },
  tls_cert: {
    schema: text,
    about: "PEM file of a certificate, with its chain: serve speaks HTTPS then; read again when it changes",
  },
  tls_key: { schema: text, about: "PEM file of its private key" },
  env: {
    schema: oneOf("production", "development"),
    fallback: "production",
    about: "development also allows simulated payments",
  },
  admin_token: { schema: token, secret: true, about: "made at first start and kept in the data directory" },
  worker_token: { schema: token, secret: true, about: "made at first start and kept in the data directory" },
  live_token: { schema: token, secret: true, about: "made at first start and kept in the data directory" },
  signing_secret: { schema: token, secret: true, about: "signs playback tokens, leases and storage addresses" },
  database_url: {
    schema: url("file:", "libsql:", "http:", "https:"),
    about: "file:<data>/vodbox.db, or a remote libSQL server",
  },
  database_auth_token: { schema: text, secret: true, about: "of the remote libSQL server" },
  storage: {
    schema: oneOf("local", "s3", "none"),
    fallback: "local",
    about: "where objects lie; none switches object storage off",
  },
  min_free_bytes: {
    schema: integer(0, Number.MAX_SAFE_INTEGER),
    fallback: "268435456",
    about: "uploads are refused (507) when the disk has less than this left",
  },
  fetch_concurrency: {
    schema: integer(1, 256),
    fallback: "8",
    about: "sources that are fetched from URLs at once; while other tenants wait, at most 2 of one tenant",
  },
  fetch_min_bytes_per_second: {
    schema: integer(0, Number.MAX_SAFE_INTEGER),
    fallback: "16384",
    about: "a source that is slower than this over 60 s fails; 0 for no limit",
  },
  ffmpeg: { schema: text, about: "path of ffmpeg; else the bundled one, else PATH" },
  ffprobe: { schema: text, about: "path of ffprobe; else the bundled one, else PATH" },
  early_playback: {
    schema: flag,
    fallback: "0",
    about: "1: an asset plays as soon as one rendition is whole, unless its upload says otherwise",
  },
  encoder: {
    schema: oneOf("software", "nvenc", "qsv", "vaapi"),
    fallback: "software",
    about: "of workers; the others need their hardware, and an ffmpeg that has them",
  },
  ffmpeg_memory_bytes: {
    schema: integer(128 * 2 ** 20, Number.MAX_SAFE_INTEGER),
    about: "the most that one ffmpeg may allocate; unless told, three quarters of the machine, 8 GiB at most",
  },
  workers: { schema: integer(0, 64), fallback: "1", about: "local worker processes that serve starts" },
  processes: {
    schema: integer(1, 64),
    fallback: "1",
    about: "processes of the server that share the port, the data directory and the work",
  },
  lease_seconds: { schema: integer(2, 86_400), fallback: "120", about: "a heartbeat is expected every quarter of it" },
  job_timeout_seconds: {
    schema: integer(60, 31 * 86_400),
    fallback: "172800",
    about: "the longest that an attempt may take; then its asset is errored",
  },
  job_stall_seconds: {
    schema: integer(10, 31 * 86_400),
    fallback: "3600",
    about: "an attempt that makes no progress for so long is given to another worker",
  },
  max_attempts: { schema: integer(1, 100), fallback: "5", about: "attempts before an asset is errored" },
  max_upload_bytes: {
    schema: integer(1, Number.MAX_SAFE_INTEGER),
    fallback: String(64 * 2 ** 30),
    about: "largest source accepted",
  },
  upload_ttl_seconds: {
    schema: integer(1, 31 * 86_400),
    fallback: "86400",
    about: "an upload not completed by then is expired",
  },
  s3_endpoint: { schema: url("http:", "https:"), about: "address of the S3 server" },
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
      v.check((value) => value.split("/").every((part) => part !== "." && part !== ".."), "must not hold . or .."),
    ),
    about: "folder of every key, such as vodbox/production",
  },
  s3_public_url: {
    schema: url("http:", "https:"),
    about:
      "stands in the endpoint's place in addresses for clients and workers; with path style 0 the bucket's own address",
  },
  s3_delivery: {
    schema: oneOf("redirect", "rewrite", "proxy"),
    fallback: "redirect",
    about: "how players get segments: redirected to S3, by playlists that name S3, or through vodbox",
  },
  translate: {
    schema: oneOf("off", "libretranslate", "apertium", "deepl", "openai"),
    fallback: "off",
    about: "translation service",
  },
  translate_url: { schema: url("http:", "https:"), about: "its address; deepl and openai have one of their own" },
  translate_key: { schema: text, secret: true, about: "its key" },
  translate_model: { schema: text, fallback: "gpt-4o-mini", about: "the model, with openai" },
  translate_timeout_seconds: {
    schema: integer(1, 600),
    fallback: "60",
    about: "for one request to it; a whole track may take five times as long",
  },
  transcribe: { schema: oneOf("off", "openai", "command"), fallback: "off", about: "what makes captions of speech" },
  transcribe_url: {
    schema: url("http:", "https:"),
    about: "with openai: its address; with a key and no address it is OpenAI's own",
  },
  transcribe_key: { schema: text, secret: true, about: "its key" },
  transcribe_model: { schema: text, fallback: "whisper-1", about: "the model, with openai" },
  transcribe_timeout_seconds: {
    schema: integer(1, 86_400),
    fallback: "1800",
    about: "with openai: for one request, which brings ten minutes of sound at most",
  },
  transcribe_command: { schema: text, about: "gets a WAV path and a language, prints WebVTT or SRT" },
  payments: { schema: oneOf("off", "stripe", "paypal", "simulated"), fallback: "off", about: "payment provider" },
  stripe_key: { schema: text, secret: true, about: "secret or restricted key, sk_… or rk_…" },
  stripe_webhook_secret: { schema: text, secret: true, about: "of the endpoint at Stripe, whsec_…" },
  stripe_url: { schema: url("http:", "https:"), fallback: "https://api.stripe.com", about: "Stripe's address" },
  paypal_client_id: { schema: text, about: "of the REST app at PayPal" },
  paypal_client_secret: { schema: text, secret: true, about: "of the REST app at PayPal" },
  paypal_webhook_id: { schema: text, about: "of the app's webhook at PayPal" },
  paypal_url: {
    schema: url("http:", "https:"),
    fallback: "https://api-m.paypal.com",
    about: "PayPal's address; its sandbox is https://api-m.sandbox.paypal.com",
  },
  checkout_return_url: {
    schema: url("http:", "https:"),
    about: "where payers come back to, with order_id and outcome in the query; a page of vodbox itself unless told",
  },
  prices: {
    schema: Prices,
    read: readPrices,
    about:
      "price sheet: JSON, the path of a JSON or TOML file, or a table of the settings file; else a sheet of its own",
  },
  webhook_allow_cidrs: {
    schema: list,
    fallback: "",
    about: "private ranges that deliveries and fetches of sources may reach",
  },
  webhook_retry_seconds: { schema: waits, fallback: "5,300,1800,7200,18000", about: "the five waits between attempts" },
  rate_limit_uploads: { schema: rate, fallback: "120/60", about: "requests/seconds a tenant" },
  rate_limit_billing: { schema: rate, fallback: "30/60", about: "requests/seconds a tenant" },
  rate_limit_translate: { schema: rate, fallback: "20/60", about: "requests/seconds a tenant" },
  rate_limit_sync: { schema: rate, fallback: "20/60", about: "requests/seconds a tenant" },
  rate_limit_live: { schema: rate, fallback: "6000/60", about: "requests/seconds an address" },
  rate_limit_device_tokens: { schema: rate, fallback: "10/60", about: "requests/seconds an address" },
  rate_limit_beacon: { schema: rate, fallback: "600/60", about: "requests/seconds an address" },
  rate_limit_pictures: {
    schema: rate,
    fallback: "600/60",
    about: "pictures made on demand/seconds an address; those that are kept already do not count",
  },
  playback_event_days: {
    schema: integer(1, 3650),
    fallback: "30",
    about: "days that single playback events are kept; their sums stay",
  },
  audit_days: { schema: integer(1, 36_500), fallback: "400", about: "days that entries of the audit log are kept" },
  log_level: {
    schema: oneOf("trace", "debug", "info", "warn", "error", "fatal", "silent"),
    fallback: "info",
    about: "how much is logged",
  },
  log_format: { schema: oneOf("pretty", "json"), about: "pretty on a terminal, else json" },
  segment_cache_bytes: {
    schema: integer(0, 2 ** 40),
    fallback: String(256 * 2 ** 20),
    about: "memory for hot segments",
  },
  static_mp4: {
    schema: flag,
    fallback: "0",
    about: "an MP4 file beside the segments, for players that know no playlists",
  },
  trust_shared_disk: {
    schema: flag,
    fallback: "1",
    about: "workers that prove to share the disk read and write it without copies",
  },
} satisfies Record<string, Setting>;

export type SettingName = keyof typeof SETTINGS;
export const envName = (name: string) => `VODBOX_${name.toUpperCase()}`;

import { type SQL, sql } from "drizzle-orm";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import { expectError } from "#test/support/error.ts";

let app: TestApp;
let tenant: { id: number };
let key: string;
beforeAll(async () => {
  app = await testApp({ rate_limit_uploads: "100000/60", rate_limit_billing: "100000/60", env: "development" });
  tenant = await app.tenant();
  key = await app.key(tenant.id);
});
afterAll(() => app.close());

/** Who bounds the rows of a table. A table that is not here fails the test: decide before you add one. */
type Bound =
  /** Its bytes count in the storage of the tenant, by triggers. */
  | "metered"
  /** Operators, or the server itself, create them; their number does not depend on what tenants request. */
  | "operator"
  /** A named limit: the number, and where it is enforced. */
  | { most: string }
  /** A fixed number for each row of another table, with which they are deleted. */
  | { per: string; most: string }
  /** Deleted after this time. */
  | { kept: string };

const TABLES: Record<string, Bound> = {
  analytics_devices: { per: "assets", most: "1 per hour and kind of device, while the asset is kept" },
  analytics_hours: { per: "assets", most: "1 per hour, while they are kept" },
  analytics_minutes: { per: "tenants", most: "1 per minute of the last hour" },
  analytics_origins: {
    per: "assets",
    most: "1 per hour and country, and per hour and referrer of the day, while they are kept",
  },
  analytics_reach: { per: "assets", most: "1 per hour and hundredth, while they are kept" },
  analytics_referrers: { per: "assets", most: "100 per day" },
  analytics_returns: { per: "assets", most: "1 per pair of hours, while they are kept" },
  analytics_startups: { per: "assets", most: "1 per hour and bucket, while they are kept" },
  analytics_viewers: { kept: "400 days; VODBOX_RATE_LIMIT_BEACON" },
  api_keys: { most: "10,000 of a tenant, 422 api_key_limit_reached" },
  assets: "metered",
  assets_text: { per: "assets", most: "1" },
  audio_tracks: { per: "assets", most: "32" },
  audit_entries: { kept: "VODBOX_AUDIT_DAYS" },
  billing_events: "operator",
  billing_orders: { most: "10,000 of a tenant, 422 order_limit_reached" },
  callback_receipts: { per: "transcoding_attempts", most: "1 per operation of the worker contract" },
  caption_jobs: { per: "subtitles", most: "1" },
  caption_parts: { per: "caption_jobs", most: "1 per minutes of audio" },
  collections: "metered",
  encoding_profiles: { most: "100 of a tenant, 422 encoding_profile_limit_reached" },
  events: { kept: "30 days" },
  idempotency_records: { most: "256 MiB of a tenant, for 24 hours" },
  import_runs: { most: "50 of a tenant: the newest, each with 64 KiB of problems" },
  import_rows: { per: "imports", most: "1,000" },
  imports: { most: "1 of a tenant, 409 import_in_progress" },
  ingest_batches: { most: "10,000 of a tenant, 422 batch_limit_reached" },
  ingest_parts: { per: "ingest_uploads", most: "10,000" },
  ingest_uploads: { per: "ingest_batches", most: "100,000, and 10,000 aborted ones, 409 batch_conflict" },
  invitations: { most: "500 open ones of a tenant, 422 invitation_limit_reached; 30 days after their end" },
  job_counts: "operator",
  live_channels: { most: "50,000 of a tenant, 422 channel_limit_reached" },
  live_minutes: { kept: "400 days; 1 per channel and minute of media" },
  live_reports: { per: "live_streams", most: "1 per time that is shared, until it is recorded" },
  live_streams: { per: "live_channels", most: "1 at a time; a row needs media of a publisher" },
  mails: { kept: "until they expire" },
  mux_masters: { per: "assets", most: "1" },
  mux_streams: { per: "live_channels", most: "1" },
  mux_uploads: { most: "10,000 that have not begun, 422 upload_limit_reached; others have an asset" },
  notification_reads: { per: "notifications", most: "1 per user" },
  notifications: { most: "200 of a tenant: the newest" },
  pairing_codes: { kept: "ten minutes" },
  password_resets: { kept: "30 days; 3 per hour and user" },
  playback_events: { kept: "VODBOX_PLAYBACK_EVENT_DAYS; VODBOX_RATE_LIMIT_BEACON" },
  playback_ids: { per: "assets", most: "100, 422 playback_id_limit_reached; 100 per channel" },
  playback_restrictions: { most: "100 of a tenant, 422 playback_restriction_limit_reached" },
  playback_sessions: { kept: "VODBOX_PLAYBACK_EVENT_DAYS; VODBOX_RATE_LIMIT_BEACON" },
  recovery_codes: { per: "users", most: "10" },
  removal_holds: "operator",
  replaced_media: { per: "assets", most: "1 per encode, for hours" },
  search_index: { per: "search_texts", most: "1" },
  search_queue: { per: "subtitles", most: "1, until it is indexed" },
  search_sections: { per: "subtitles", most: "1 per cue; the words are metered" },
  search_texts: { per: "search_sections", most: "1" },
  servers: "operator",
  sessions: { most: "1,000 of a user, key or the operator: the newest" },
  setup_codes: "operator",
  share_plays: { per: "shares", most: "1 per play and viewer, for 24 hours; 10 passwords per minute and address" },
  shares: { per: "assets", most: "1,000, 422 share_limit_reached; and 1,000 deleted ones" },
  signing_keys: { most: "20 active ones and 1,000 in all of a tenant, 422 signing_key_limit_reached" },
  simulcast_targets: { per: "live_channels", most: "5, 422 simulcast_target_limit_reached" },
  source_fetches: { per: "uploads", most: "1" },
  source_sums: { per: "assets", most: "1" },
  static_renditions: { per: "assets", most: "1 per name" },
  storage_place: "operator",
  subtitle_words: "metered",
  subtitles: { per: "assets", most: "20, 422 subtitle_limit_reached" },
  task_leases: { per: "transcoding_tasks", most: "1 per attempt of a worker" },
  tenant_logos: "metered",
  tenant_watermarks: "metered",
  tenants: "operator",
  tracks: "metered",
  traffic_anomalies: "operator",
  transcoding_attempts: { per: "transcoding_jobs", most: "1 per lease of a worker" },
  transcoding_jobs: { per: "assets", most: "1" },
  transcoding_tasks: { per: "transcoding_jobs", most: "1,000 chunks, and one each for plan, audio and end" },
  unwanted_objects: "operator",
  uploads: { per: "assets", most: "1, until it has ended" },
  usage_months: { per: "tenants", most: "1 per month" },
  user_identities: { per: "users", most: "1 per provider" },
  users: { most: "10,000 of a tenant, 422 user_limit_reached" },
  watermarks: { per: "tenant_watermarks", most: "1" },
  webhook_deliveries: { per: "webhook_endpoints", most: "10,000 that are finished; 30 days" },
  webhook_endpoints: { most: "100 of a tenant, 422 webhook_limit_reached" },
  workers: "operator",
};

test("the rows of each table are metered, or have a limit, or belong to the operator", async () => {
  const names = await app.opened.app.db.all<{ name: string }>(
    sql`SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name`,
  );
  // Tables that FTS5 creates for an index (https://www.sqlite.org/fts5.html).
  const isShadow = (name: string) => /_(data|idx|content|docsize|config)$/.test(name);
  const own = names.map(({ name }) => name).filter((name) => !isShadow(name) && !name.startsWith("_"));
  expect(own).toEqual(Object.keys(TABLES).sort());
});

test("a limit for each row names a table that has a bound", () => {
  for (const [name, bound] of Object.entries(TABLES))
    if (typeof bound === "object" && "per" in bound) expect(TABLES, name).toHaveProperty(bound.per);
});

test("rows that are metered have triggers which count them", async () => {
  const triggers = await app.opened.app.db.all<{ name: string }>(
    sql`SELECT DISTINCT tbl_name AS name FROM sqlite_master WHERE type = 'trigger' AND sql LIKE '%database_bytes%' ORDER BY 1`,
  );
  const counted = triggers.map(({ name }) => name).filter((name) => TABLES[name] === "metered");
  expect(counted).toEqual(Object.keys(TABLES).filter((name) => TABLES[name] === "metered"));
});

const numbers = (count: number, statement: SQL) =>
  sql`WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < ${count}) ${statement}`;

describe("a tenant cannot create any number of rows", () => {
  const cases: { table: string; fill(id: number): SQL; end: SQL | null; path: string; body: object; code: string }[] = [
    {
      table: "api_keys",
      fill: (id) =>
        numbers(
          9998,
          sql`INSERT INTO api_keys (tenant_id, name, scopes, token_hash, last_four, created_at, updated_at)
            SELECT ${id}, 'k', '[]', 'hash' || i, 'abcd', 1, 1 FROM n`,
        ),
      end: sql`UPDATE api_keys SET revoked_at = 1 WHERE token_hash LIKE 'hash%'`,
      path: "api_keys",
      body: { name: "one more", scopes: ["assets:read"] },
      code: "api_key_limit_reached",
    },
    {
      table: "users",
      fill: (id) =>
        numbers(
          9999,
          sql`INSERT INTO users (tenant_id, email_address, password_hash, created_at, updated_at)
            SELECT ${id}, i || '@example.com', 'p', 1, 1 FROM n`,
        ),
      end: null,
      path: "users",
      body: { email: "one@example.org", password: "a long password of a person", role: "viewer" },
      code: "user_limit_reached",
    },
    {
      table: "live_channels",
      fill: (id) =>
        numbers(
          49_999,
          sql`INSERT INTO live_channels (tenant_id, channel, name, playback_policy, stream_key_hash, created_at, updated_at)
            SELECT ${id}, 'c' || i, 'c', 'public', 'h' || i, 1, 1 FROM n`,
        ),
      end: null,
      path: "live/channels",
      body: { channel: "more" },
      code: "channel_limit_reached",
    },
    {
      table: "ingest_batches",
      fill: (id) =>
        numbers(
          9999,
          sql`INSERT INTO ingest_batches (tenant_id, status, folder, lease_seconds, expires_at, created_at, updated_at)
            SELECT ${id}, 'open', 'f' || i, 60, 9999999999999, 1, 1 FROM n`,
        ),
      end: sql`UPDATE ingest_batches SET status = 'expired', ended_at = 1, swept_at = 1 WHERE folder LIKE 'f%'`,
      path: "ingest_batches",
      body: {},
      code: "batch_limit_reached",
    },
  ];

  test.each(cases)("$table", async ({ fill, end, path, body, code }) => {
    await app.opened.app.write((tx) => tx.run(fill(tenant.id)));
    const create = (more: object = {}) =>
      app.call("POST", `/api/v1/${path}`, { admin: app.admin, body: { tenant_id: tenant.id, ...body, ...more } });
    expect((await create()).status).toBe(201);
    expectError(
      await create({
        ...("channel" in body && { channel: "again" }),
        ...("email" in body && { email: "two@example.org" }),
      }),
      422,
      code,
    );
    if (!end) return;
    await app.opened.app.write((tx) => tx.run(end));
    expect((await create()).status).toBe(201);
  });

  test("aborted uploads of a batch", async () => {
    const { body: batch } = await app.as(key).createBatch({ tenant_id: tenant.id });
    await app.opened.app.write((tx) =>
      tx.run(
        numbers(
          10_000,
          sql`INSERT INTO ingest_uploads (tenant_id, batch_id, object_key, status, mode, content_type, bytes_expected, created_at, updated_at)
            SELECT ${tenant.id}, ${batch.id}, 'k', 'aborted', 'put', 'video/mp4', 1, 1, 1 FROM n`,
        ),
      ),
    );
    const upload = { object_key: "a/init.mp4", content_type: "video/mp4", bytes_expected: 10 };
    const response = await app.as(key).createBatchUpload(batch.id, upload);
    expectError(response, 409, "batch_conflict");
  });

  test("revoked signing keys", async () => {
    await app.opened.app.write((tx) =>
      tx.run(
        numbers(
          1000,
          sql`INSERT INTO signing_keys (tenant_id, key_id, name, algorithm, public_key, revoked_at, created_at, updated_at)
            SELECT ${tenant.id}, 'sk' || i, 'k', 'RS256', 'p', 1, 1, 1 FROM n`,
        ),
      ),
    );
    const create = () => app.as(key).createSigningKey({ tenant_id: tenant.id, name: "new", algorithm: "EdDSA" });
    expect((await create()).status).toBe(201);
    const [left] = await app.opened.app.db.all<{ n: number }>(sql`SELECT count(*) AS n FROM signing_keys`);
    expect(left?.n).toBe(901);
  });
});

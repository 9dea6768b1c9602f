import { randomBytes } from "node:crypto";
import { deflateSync } from "node:zlib";
import { sql } from "drizzle-orm";
import { beforeEach, expect, test } from "vitest";
import { embeddedMigrations } from "#src/lib/executable/embedded.ts";
import { migrate } from "#storage/db/migrate.ts";
import { type TestApp, testApp } from "#test/support/app.ts";
import { expectError } from "#test/support/error.ts";
import { uploaded } from "#test/support/flow.ts";
import { bare, folder } from "#test/support/storage/database.ts";

const QUOTA = 64 * 2 ** 20;
const prices = JSON.stringify({
  currency: "EUR",
  plans: Object.fromEntries(
    ["free", "starter", "pro", "enterprise"].map((plan) => [
      plan,
      {
        monthly_price_minor: 100,
        storage_gb_month: { included: 0, unit_price_minor: 100_000 },
        egress_gb: { included: 0, unit_price_minor: 1 },
        transcoding_minute: { included: 0, unit_price_minor: 1 },
        quotas: plan === "starter" ? { storage_bytes: 20_000 } : { storage_bytes: QUOTA },
      },
    ]),
  ),
});

let app: TestApp;
let tenant: { id: number };
let key: string;
let asset: { id: number };
beforeEach(async () => {
  app = await testApp({ prices, rate_limit_uploads: "10000/60" });
  tenant = await app.tenant();
  key = await app.key(tenant.id);
  asset = (await uploaded(app, key)).asset;
});

const bytesOf = async (id = tenant.id): Promise<number> =>
  (await app.as({ admin: app.admin }).getTenant(id)).body.storage_bytes;
const send = (method: string, path: string, body?: unknown) =>
  app.call(method, path, { key, ...(body !== undefined && { body }) });
/** The amount by which `work` changes the stored bytes of the tenant. */
async function added(work: () => Promise<{ status: number; text: string }>): Promise<number> {
  const before = await bytesOf();
  const { status, text } = await work();
  expect([status < 300, text]).toEqual([true, text]);
  return (await bytesOf()) - before;
}
const text = (bytes: number) => "x".repeat(bytes);
const cue = (bytes: number) => ({ start_ms: 0, payload: { text: text(bytes) } });

/** A PNG image of about `bytes` bytes, different each time: pixels that do not compress. */
function png(bytes: number): Buffer {
  const side = Math.floor(Math.sqrt(bytes / 4));
  const rows = Array.from({ length: side }, () => Buffer.concat([Buffer.alloc(1), randomBytes(side * 4)]));
  const chunk = (type: string, data: Buffer) => {
    const length = Buffer.alloc(4);
    length.writeUInt32BE(data.length);
    return Buffer.concat([length, Buffer.from(type), data, Buffer.alloc(4)]);
  };
  const head = Buffer.alloc(13);
  head.writeUInt32BE(side, 0);
  head.writeUInt32BE(side, 4);
  head.set([8, 6], 8);
  const data = deflateSync(Buffer.concat(rows), { level: 0 });
  return Buffer.concat([
    Buffer.from("89504e470d0a1a0a", "hex"),
    ...[chunk("IHDR", head), chunk("IDAT", data), chunk("IEND", Buffer.alloc(0))],
  ]);
}
const profile = (name: string) => send("POST", "/api/v1/encoding_profiles", { name, watermark: {} });
const setImage = (name: string, raw: Buffer) =>
  app.call("PUT", `/api/v1/encoding_profiles/${name}/watermark`, {
    key,
    raw: raw as unknown as string,
    headers: { "content-type": "image/png" },
  });

/** Every kind of row whose size a client chooses: how it is written with a text of a size, and deleted. */
const KINDS: Record<string, { write(bytes: number): Promise<any>; remove(): Promise<any> }> = {
  tags: {
    write: (bytes) =>
      send("PATCH", `/api/v1/assets/${asset.id}/tags`, {
        a: text(Math.min(bytes, 1000)),
        b: bytes > 1000 ? text(bytes - 1000) : null,
      }),
    remove: () => send("PATCH", `/api/v1/assets/${asset.id}/tags`, { a: null, b: null }),
  },
  "the description of an asset": {
    write: (bytes) => send("PATCH", `/api/v1/assets/${asset.id}`, { video_asset: { description: text(bytes) } }),
    remove: () => send("PATCH", `/api/v1/assets/${asset.id}`, { video_asset: { description: null } }),
  },
  cues: {
    write: (bytes) => send("POST", `/api/v1/assets/${asset.id}/tracks`, { kind: "scene", cues: [cue(bytes)] }),
    async remove() {
      const [{ id }] = (await send("GET", `/api/v1/assets/${asset.id}/tracks`)).body;
      return send("DELETE", `/api/v1/assets/${asset.id}/tracks/${id}`);
    },
  },
  "the description of a collection": {
    async write(bytes) {
      const [existing] = (await send("GET", "/api/v1/collections")).body;
      const collection = { name: "C", slug: "c", description: text(bytes) };
      return existing
        ? send("PATCH", `/api/v1/collections/${existing.id}`, { collection })
        : send("POST", "/api/v1/collections", { tenant_id: tenant.id, collection });
    },
    async remove() {
      const [{ id }] = (await send("GET", "/api/v1/collections")).body;
      return send("DELETE", `/api/v1/collections/${id}`);
    },
  },
  subtitles: {
    async write(bytes) {
      const [existing] = (await send("GET", `/api/v1/assets/${asset.id}/subtitles`)).body;
      if (existing) await send("DELETE", `/api/v1/assets/${asset.id}/subtitles/${existing.id}`);
      const form = new FormData();
      form.set("language", "en");
      form.set("label", "English");
      form.set("file", new Blob([`WEBVTT\n\n00:00.000 --> 00:01.000\n${text(bytes)}\n`]), "a.vtt");
      return app.as(key).createSubtitle(asset.id, form);
    },
    async remove() {
      const [{ id }] = (await send("GET", `/api/v1/assets/${asset.id}/subtitles`)).body;
      return send("DELETE", `/api/v1/assets/${asset.id}/subtitles/${id}`);
    },
  },
};

test.each(Object.keys(KINDS))("%s count as storage while they exist", async (name) => {
  const { write, remove } = KINDS[name] as (typeof KINDS)[string];
  const before = await bytesOf();
  const first = await added(() => write(1000));
  expect(first).toBeGreaterThanOrEqual(1000);
  expect(first).toBeLessThan(1100);
  // Written again it is replaced.
  expect(await added(() => write(500))).toBe(-500);
  await added(remove);
  expect(await bytesOf()).toBe(before);
  // And with its asset.
  await write(800);
  expect((await send("DELETE", `/api/v1/assets/${asset.id}`)).status).toBe(204);
  if (!name.includes("collection")) expect(await bytesOf()).toBe(0);
});

test.each(["cues", "tags", "the description of an asset", "the description of a collection"])(
  "%s beyond the plan are refused, and nothing is stored",
  async (name) => {
    const { write } = KINDS[name] as (typeof KINDS)[string];
    await app.plan(tenant.id, "starter");
    await app.as(key).setTrack(asset.id, { kind: "fill", cues: [cue(19_000)] });
    const before = await bytesOf();
    expectError(await write(2000), 403, "quota_exceeded");
    expect(await bytesOf()).toBe(before);
    // What makes the rows smaller is allowed at any time.
    await app.plan(tenant.id, "pro");
    expect((await write(2000)).status).toBeLessThan(300);
    await app.plan(tenant.id, "starter");
    expect((await write(10)).status).toBeLessThan(300);
  },
);

test("uploads have less storage when rows need it", async () => {
  await app.plan(tenant.id, "starter");
  await send("POST", `/api/v1/assets/${asset.id}/tracks`, { kind: "fill", cues: [cue(15_000)] });
  expectError(
    await send("POST", "/api/v1/uploads/initiate", { filename: "a.mp4", bytes_expected: 10_000 }),
    403,
    "quota_exceeded",
  );
});

test("watermarks in use have at most 20 MiB, and replaced ones are deleted for others", async () => {
  const size = 1_000_000;
  const most = Math.floor((20 * 2 ** 20) / (size + 1000));
  const before = await bytesOf();
  for (let number = 0; number < most; number++) {
    await profile(`p${number}`);
    expect((await setImage(`p${number}`, png(size))).status).toBe(200);
  }
  expect(await bytesOf()).toBeGreaterThan(before + most * (size - 5000));
  await profile("more");
  expectError(await setImage("more", png(size)), 422, "watermark_limit_reached");
  expect((await send("GET", "/api/v1/encoding_profiles/more")).body.watermark.image_sha256).toBeNull();
  // Replacing does not add: the database does not grow, however often it is done.
  const full = await bytesOf();
  for (let time = 0; time < 5; time++) expect((await setImage("p0", png(size))).status).toBe(200);
  expect(await bytesOf()).toBeLessThanOrEqual(full + 2 * size);
  const [{ bytes }] = (await app.opened.app.db.all(sql`SELECT sum(octet_length(image)) AS bytes FROM watermarks`)) as [
    { bytes: number },
  ];
  expect(bytes).toBeLessThanOrEqual(((20 * 2 ** 20 + size) * 4) / 3);
  // The image of a deleted profile is deleted for another.
  await send("DELETE", "/api/v1/encoding_profiles/p1");
  expect((await setImage("more", png(size))).status).toBe(200);
  // An image that a job uses is in use, whatever becomes of its profile.
  await uploaded(app, key, { encoding_profile: "p2" });
  await send("DELETE", "/api/v1/encoding_profiles/p2");
  await profile("last");
  expectError(await setImage("last", png(size)), 422, "watermark_limit_reached");
  // Another tenant has its own limit, and the same image counts for each.
  const other = await app.key((await app.tenant()).id);
  key = other;
  await profile("own");
  expect((await setImage("own", png(size))).status).toBe(200);
});

test("bytes in the database are billed from the time at which they were written", async () => {
  app.stopClock();
  const { body: before } = await send("GET", "/api/v1/billing/estimate");
  app.advance(3_600_000);
  await send("POST", `/api/v1/assets/${asset.id}/tracks`, { kind: "fill", cues: [cue(190_000)] });
  await app.runTask("bill-database-bytes");
  const rows = async () =>
    (await app.opened.app.db.all(
      sql`SELECT storage_byte_ms AS ms FROM usage_months WHERE tenant_id = ${tenant.id}`,
    )) as {
      ms: string;
    }[];
  expect(before).toBeDefined();
  // Only the source so far: 18 bytes for an hour and the moment before.
  const total = (await rows()).reduce((sum, { ms }) => sum + Number(ms), 0);
  expect(total).toBeGreaterThanOrEqual(18 * 3_600_000);
  expect(total).toBeLessThan(190_000 * 3_600_000);
});

test("a migration counts what exists", async () => {
  const at = folder();
  const file = `${at}/test.db`;
  const url = `file:${at}/test.db`;
  const all = embeddedMigrations();
  await migrate({ url, migrations: all.filter(({ name }) => name < "0055") });
  const image = Buffer.alloc(1001, 1).toString("base64");
  const now = "1, 1";
  bare(file).exec(`
    INSERT INTO tenants (id, name, slug, created_at, updated_at) VALUES (1, 'a', 'a', ${now}), (2, 'b', 'b', ${now});
    INSERT INTO assets (id, tenant_id, external_id, title, input_status, playback_status, playback_policy, source_key, tags, description, created_at, updated_at)
      VALUES (1, 1, 'x', 't', 'pending', 'draft', 'public', 'k', '{"a":"bc"}', 'äö', ${now}), (2, 2, 'y', 't', 'pending', 'draft', 'public', 'l', '{}', NULL, ${now});
    INSERT INTO tracks (tenant_id, asset_id, kind, name, status, cues, source, created_at, updated_at)
      VALUES (1, 1, 'scene', 'n', 'ready', '[1,2,3]', 'me', ${now});
    INSERT INTO collections (tenant_id, name, slug, description, created_at, updated_at) VALUES (1, 'c', 'c', 'abc', ${now});
    INSERT INTO watermarks VALUES ('s', '${image}', 1);
    INSERT INTO encoding_profiles (tenant_id, name, definition, watermark, created_at, updated_at)
      VALUES (1, 'p', '{}', 's', ${now}), (1, 'q', '{}', 's', ${now}), (2, 'p', '{}', NULL, ${now});
  `);
  await migrate({ url, migrations: all });
  const rows = bare(file).prepare("SELECT id, database_bytes AS bytes FROM tenants ORDER BY id").all([]);
  expect(rows).toEqual([
    { id: 1, bytes: 10 + 4 + 7 + 2 + 3 + 1001 },
    { id: 2, bytes: 0 },
  ]);
});

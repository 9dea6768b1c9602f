import { createPrivateKey, createPublicKey, generateKeyPairSync } from "node:crypto";
import { sql } from "drizzle-orm";
import { beforeEach, describe, expect, test } from "vitest";
import { type TestApp, testApp } from "../support/app.ts";
import { expectError } from "../support/error.ts";

const path = "/api/v1/signing_keys";
const spki = { type: "spki", format: "pem" } as const;
const pkcs8 = { type: "pkcs8", format: "pem" } as const;
const ed = generateKeyPairSync("ed25519");
const rsa = generateKeyPairSync("rsa", { modulusLength: 2048 });
const pem = (key: { export(options: typeof spki): string | Buffer }) => String(key.export(spki));
const base64 = (text: string) => Buffer.from(text).toString("base64");

let app: TestApp;
let tenant: { id: number };
let key: string;
beforeEach(async () => {
  app = await testApp();
  tenant = await app.tenant();
  key = await app.key(tenant.id);
});
const create = (body: unknown, headers: Record<string, string> = {}) => app.call("POST", path, { key, body, headers });
const listed = async () => (await app.call("GET", path, { key })).body;
/** All that the database holds, as one text. */
async function stored(): Promise<string> {
  const { db } = app.opened.app;
  const tables = await db.all<{ name: string }>(sql`select name from sqlite_schema where type = 'table'`);
  const rows = await Promise.all(tables.map(({ name }) => db.all(sql.raw(`select * from "${name}"`))));
  return JSON.stringify(rows);
}

describe("a signing key", () => {
  test("is made by the server: its private half is answered once and kept nowhere", async () => {
    for (const [algorithm, type] of [
      [undefined, "rsa"],
      ["EdDSA", "ed25519"],
    ]) {
      const once = { "idempotency-key": `once-${type}` };
      const made = await create({ name: "Backend", algorithm }, once);
      const { private_key, ...record } = made.body;
      expect([made.status, record]).toEqual([
        201,
        {
          ...{ id: expect.any(Number), key_id: expect.stringMatching(/^sk_[A-Za-z0-9]{22}$/), tenant_id: tenant.id },
          ...{ name: "Backend", algorithm: algorithm ?? "RS256", public_key: expect.any(String), revoked_at: null },
          ...{ created_at: expect.any(String), updated_at: expect.any(String) },
        },
      ]);
      const secret = createPrivateKey(Buffer.from(private_key, "base64").toString());
      expect([secret.asymmetricKeyType, pem(createPublicKey(secret as never))]).toEqual([type, record.public_key]);
      const again = await create({ name: "Backend", algorithm }, once);
      expect([again.status, again.headers.get("idempotent-replayed"), again.body]).toEqual([201, "true", record]);
      expect((await listed())[0]).toEqual(record);
      const all = await stored();
      expect(all).toContain(JSON.stringify(record.public_key).slice(1, -1));
      for (const part of [private_key, Buffer.from(private_key, "base64").toString().split("\n")[1] as string])
        expect(all).not.toContain(part.slice(0, 60));
    }
    expect(await app.newEvents()).toEqual([]);
  });

  test.for<[string, unknown, string, string]>([
    ["PEM", pem(ed.publicKey), "EdDSA", pem(ed.publicKey)],
    ["base64 of PEM", base64(pem(rsa.publicKey)), "RS256", pem(rsa.publicKey)],
    ["PKCS#1", String(rsa.publicKey.export({ type: "pkcs1", format: "pem" })), "RS256", pem(rsa.publicKey)],
    ["PEM with other ends of line", pem(ed.publicKey).replaceAll("\n", "\r\n"), "EdDSA", pem(ed.publicKey)],
  ])("is registered as %s, and stored in one form", async ([, public_key, algorithm, kept]) => {
    for (const asked of [undefined, algorithm]) {
      const { status, body } = await create({ public_key, algorithm: asked });
      expect([status, body.algorithm, body.public_key, body.name]).toEqual([201, algorithm, kept, "Signing key"]);
      expect(body).not.toHaveProperty("private_key");
    }
  });

  const small = generateKeyPairSync("rsa", { modulusLength: 1024 });
  const encrypted = { ...pkcs8, cipher: "aes-256-cbc", passphrase: "x" };
  test.for<[string, Record<string, unknown>, string]>([
    ["a private key", { public_key: String(rsa.privateKey.export(pkcs8)) }, "private key; nothing was kept"],
    ["an old private key", { public_key: String(rsa.privateKey.export({ ...pkcs8, type: "pkcs1" })) }, "private key"],
    ["a private key in base64", { public_key: base64(String(ed.privateKey.export(pkcs8))) }, "private key"],
    ["a locked private key", { public_key: String(rsa.privateKey.export(encrypted)) }, "private key"],
    ["both halves", { public_key: pem(ed.publicKey) + String(ed.privateKey.export(pkcs8)) }, "private key"],
    ["a private JWK", { public_key: JSON.stringify(ed.privateKey.export({ format: "jwk" })) }, "as PEM"],
    ["1,024 bits", { public_key: pem(small.publicKey) }, "1024 bits"],
    [
      "a small exponent",
      { public_key: pem(generateKeyPairSync("rsa", { modulusLength: 2048, publicExponent: 3 }).publicKey) },
      "exponent",
    ],
    [
      "RSA-PSS",
      { public_key: pem(generateKeyPairSync("rsa-pss", { modulusLength: 2048 }).publicKey) },
      "RSA or Ed25519",
    ],
    ["a curve", { public_key: pem(generateKeyPairSync("ec", { namedCurve: "P-256" }).publicKey) }, "RSA or Ed25519"],
    ["X25519", { public_key: pem(generateKeyPairSync("x25519").publicKey) }, "RSA or Ed25519"],
    ["nothing", { public_key: "" }, "as PEM"],
    ["a torn key", { public_key: pem(rsa.publicKey).slice(0, 200) }, "as PEM"],
    ["a NUL", { public_key: `${pem(ed.publicKey)}\0` }, "NUL"],
    ["too much", { public_key: pem(ed.publicKey) + " ".repeat(9000) }, "8000"],
    ["another algorithm", { public_key: pem(ed.publicKey), algorithm: "RS256" }, "for EdDSA"],
    ["no algorithm", { algorithm: "none" }, "RS256 or EdDSA"],
    ["a shared secret", { algorithm: "HS256" }, "RS256 or EdDSA"],
    ["a number", { public_key: 7 }, "must be a string"],
    ["a blank name", { name: " " }, "blank"],
  ])("is not %s", async ([, body, why]) => {
    const answer = await create(body, { "idempotency-key": "k" });
    expectError(answer, 422, "validation_failed");
    expect(answer.body.error).toContain(why);
    expect(answer.text).not.toMatch(/BEGIN PRIVATE|MII|MC4C/);
    expect(await listed()).toEqual([]);
    expect(await stored()).not.toMatch(/BEGIN .{0,10}PRIVATE/);
  });

  test("is one of at most twenty that live", async () => {
    const body = { public_key: pem(ed.publicKey) };
    for (let count = 1; count < 20; count++) expect((await create(body)).status).toBe(201);
    const both = await Promise.all([create(body), create(body)]);
    expect(both.map(({ status }) => status).sort()).toEqual([201, 422]);
    expectError(await create({ algorithm: "EdDSA" }), 422, "signing_key_limit_reached");
    const [newest] = await listed();
    const other = await app.key((await app.tenant()).id);
    expectError(await app.call("DELETE", `${path}/${newest.id}`, { key: other }), 404, "not_found");
    for (let turn = 0; turn < 2; turn++)
      expect((await app.call("DELETE", `${path}/${newest.id}`, { key })).status).toBe(204);
    expect((await listed())[0].revoked_at).toMatch(/^20/);
    expect((await create(body)).status).toBe(201);
    const first = await app.call("GET", `${path}?limit=2`, { key });
    const next = /<([^>]+)>; rel="next"/.exec(first.headers.get("link") ?? "")?.[1] as string;
    const ids = [...first.body, ...(await app.call("GET", next, { key })).body].map(({ id }: { id: number }) => id);
    expect(ids.slice(0, 3)).toEqual([21, 20, 19]);
  });

  test("is its tenant's, on a paid plan", async () => {
    const body = { algorithm: "EdDSA" };
    const poor = await app.tenant({ plan_name: "free" });
    const admin = { admin: app.admin };
    expectError(
      await app.call("POST", path, { ...admin, body: { ...body, tenant_id: poor.id } }),
      403,
      "plan_required",
    );
    expectError(await app.call("POST", path, { ...admin, body }), 422, "parameter_missing");
    expectError(await app.call("POST", path, { ...admin, body: { ...body, tenant_id: 99 } }), 404, "not_found");
    expectError(await create({ ...body, tenant_id: poor.id }), 404, "not_found");
    expect((await app.call("POST", path, { ...admin, body: { ...body, tenant_id: tenant.id } })).status).toBe(201);
    expect(await listed()).toHaveLength(1);
    expect((await app.call("GET", `${path}?tenant_id=${poor.id}`, admin)).body).toEqual([]);
  });
});

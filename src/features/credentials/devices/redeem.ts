import { randomInt } from "node:crypto";
import { and, eq, gt, isNull, sql } from "drizzle-orm";
import type * as v from "valibot";
import type { App } from "#app.ts";
import { HttpError, sha256 } from "#lib/base";
import { attributeTo } from "#platform/http/audit.ts";
import { scopesWithin } from "#platform/http/roles.ts";
import type { Db } from "#storage/db/open.ts";
import { pairingCodes, type TenantRow, tenants, type UserRow } from "#storage/db/schema.ts";
import { insertKey } from "../keys/insert.ts";
import { attemptCode } from "./attempts.ts";
import { withUser } from "./authenticate.ts";
import type { DeviceToken, Redeem } from "./schema.ts";

const SCOPES = ["assets:read", "assets:write"];
const CODE_LIVES_MS = 600_000;
/** Crockford's base 32: its characters are not confused when read aloud. */
const LETTERS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const CODE_LENGTH = 8;
/** Expired codes that a new one deletes. */
const EXPIRED_AT_ONCE = 100;

/**
 * Creates a pairing code for one device of the tenant, valid once, for ten minutes: 40 bits, against ten guesses a
 * minute.
 */
export async function newPairingCode(tx: Db, app: App, tenant: TenantRow) {
  const now = app.clock.now();
  const code = Array.from({ length: CODE_LENGTH }, () => LETTERS[randomInt(LETTERS.length)]).join("");
  // More than are added, so that none remain, but few, because the tenant waits for it.
  await tx.run(
    sql`DELETE FROM pairing_codes WHERE id IN (SELECT id FROM pairing_codes WHERE expires_at <= ${now} LIMIT ${EXPIRED_AT_ONCE})`,
  );
  const expiresAt = now + CODE_LIVES_MS;
  await tx.insert(pairingCodes).values({ tenantId: tenant.id, codeHash: sha256(code), expiresAt, createdAt: now });
  return { code: `${code.slice(0, 4)}-${code.slice(4)}`, expiresAt };
}

/** Normalizes a code as typed by a person. */
const plainCode = (typed: string) =>
  typed.toUpperCase().replaceAll(/[\s-]/g, "").replaceAll("O", "0").replaceAll(/[IL]/g, "1");

/** The same response to every fault, so that it does not reveal which users exist. */
const refuse = (): never => {
  throw new HttpError(401, "unauthorized", "These credentials are wrong, already used or expired.");
};

/** Creates a device token for a person's password, or for a pairing code, which is consumed. */
export async function redeem(app: App, body: v.InferOutput<typeof Redeem>): Promise<v.InferInput<typeof DeviceToken>> {
  if (body.pairing_code !== undefined) {
    const codeHash = sha256(plainCode(body.pairing_code));
    return app.write(async (tx) => {
      const now = app.clock.now();
      const used = await tx
        .update(pairingCodes)
        .set({ usedAt: now })
        .where(and(eq(pairingCodes.codeHash, codeHash), isNull(pairingCodes.usedAt), gt(pairingCodes.expiresAt, now)))
        .returning()
        .get();
      return used ? grant(tx, app, { tenantId: used.tenantId, user: null, name: body.device_name }) : refuse();
    });
  }
  const { email_address: email, password, totp } = body;
  if (email === undefined || password === undefined) {
    const missing = [email === undefined && "email_address", password === undefined && "password"].filter(
      (name) => name !== false,
    );
    throw new HttpError(422, "parameter_missing", "Send email_address and password, or a pairing_code.", {
      details: Object.fromEntries(missing.map((name) => [name, ["is required without a pairing_code"]])),
    });
  }
  const work = (tx: Db, user: UserRow) => {
    attributeTo(user.id);
    return grant(tx, app, { tenantId: user.tenantId, user, name: body.device_name });
  };
  const redeemed = () => withUser(app, { email, password, totp }, { refuse, work });
  return totp === undefined ? redeemed() : attemptCode(app, email, redeemed);
}

async function grant(
  tx: Db,
  app: App,
  { tenantId, user, name }: { tenantId: number; user: UserRow | null; name: string },
) {
  const active = and(eq(tenants.id, tenantId), eq(tenants.status, "active"));
  const tenant = (await tx.select().from(tenants).where(active).get()) ?? refuse();
  // The role counts with each use of the token, too.
  const scopes = [...scopesWithin(user?.role, SCOPES)];
  const key = { tenant, userId: user?.id ?? null, name, scopes, expiresAt: null, now: app.clock.now() };
  const { row, token } = await insertKey(tx, key);
  return {
    token,
    token_type: "api_key" as const,
    api_key_id: row.id,
    tenant_id: tenantId,
    scopes,
    device_name: name,
  };
}

import { and, eq, gt } from "drizzle-orm";
import * as v from "valibot";
import type { App } from "#app.ts";
import { insertTenant } from "#features/tenants/queries.ts";
import { TenantWrite } from "#features/tenants/schema.ts";
import { HttpError, randomName, sha256 } from "#lib/base";
import type { Db } from "#storage/db/open.ts";
import { setupCodes, tenants } from "#storage/db/schema.ts";
import { insertUser } from "../devices/insert-user.ts";
import { hashPassword } from "../devices/passwords.ts";
import { insertUserSession, type NewSession, type SessionClient } from "./sign-in.ts";

const CODE_LENGTH = 32;
const LIVES_MS = 3_600_000;

const hasTenant = async (db: Db) => (await db.select({ id: tenants.id }).from(tenants).limit(1).get()) !== undefined;

/**
 * The one-time code with which a browser sets up an empty server; valid for an hour, and replaces the one of an earlier
 * start. Null when there is a tenant.
 */
export async function newSetupCode(app: App): Promise<string | null> {
  if (await hasTenant(app.db)) return null;
  const code = randomName(CODE_LENGTH);
  const values = { codeHash: sha256(code), expiresAt: app.clock.now() + LIVES_MS };
  await app.write((tx) =>
    tx
      .insert(setupCodes)
      .values({ id: 1, ...values })
      .onConflictDoUpdate({ target: setupCodes.id, set: values }),
  );
  return code;
}

type SetUp = { code: string; name: string; email: string; password: string };

/** Creates the first tenant and its first user, and begins the user's session. Throws 401 for a wrong or used code. */
export async function setUp(
  app: App,
  { code, name, email, password }: SetUp,
  client: SessionClient,
): Promise<NewSession> {
  const findCode = (db: Db) =>
    db
      .select({ id: setupCodes.id })
      .from(setupCodes)
      .where(and(eq(setupCodes.codeHash, sha256(code)), gt(setupCodes.expiresAt, app.clock.now())))
      .get();
  if (!(await findCode(app.db))) return refuse();
  const passwordHash = await hashPassword(password);
  return app.write(async (tx) => {
    if (!(await findCode(tx)) || (await hasTenant(tx))) return refuse();
    await tx.delete(setupCodes);
    const now = app.clock.now();
    const tenant = await insertTenant(tx, v.parse(TenantWrite, { name, slug: slugOf(name) }), now);
    const user = await insertUser(tx, { tenantId: tenant.id, emailAddress: email, passwordHash }, now);
    return insertUserSession(tx, app, user, client);
  });
}

const refuse = (): never => {
  throw new HttpError(
    401,
    "unauthorized",
    "This set-up address is wrong, already used or expired; restart the server for a new one.",
  );
};

/** `Café Olé!` becomes `cafe-ole`; a name without letters of the Latin alphabet, `main`. */
const slugOf = (name: string) =>
  name
    .normalize("NFKD")
    .toLowerCase()
    .replaceAll(/\p{M}/gu, "")
    .split(/[^a-z0-9]/)
    .filter(Boolean)
    .join("-")
    .slice(0, 100)
    .replace(/-$/, "") || "main";

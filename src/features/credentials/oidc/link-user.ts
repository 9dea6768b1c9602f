import { and, eq, isNull } from "drizzle-orm";
import * as v from "valibot";
import type { App } from "#app.ts";
import { HttpError } from "#lib/base";
import { ROLES, type Role } from "#model/enums.ts";
import type { Db } from "#storage/db/open.ts";
import { tenants, type UserRow, userIdentities, users } from "#storage/db/schema.ts";
import { insertUser } from "../devices/insert-user.ts";
import { EmailAddress } from "../devices/schema.ts";

/** What the provider says about a person. */
export type Claims = Record<string, unknown> & { iss: string; sub: string };

const refuse = (): never => {
  throw new HttpError(401, "unauthorized", "This account belongs to no user of this server.");
};

/**
 * The user of an account at the provider: by issuer and subject, else by a verified e-mail address, else a new user of the tenant that
 * a claim names. `unusable` is the hash of a password that no one has. Throws 401.
 */
export async function linkedUser(tx: Db, app: App, claims: Claims, unusable: string): Promise<UserRow> {
  const user =
    (await byIdentity(tx, claims)) ?? (await byEmail(tx, claims)) ?? (await create(tx, app, claims, unusable));
  const active = and(eq(tenants.id, user.tenantId), eq(tenants.status, "active"), isNull(tenants.deleteRequestedAt));
  if (!(await tx.select({ id: tenants.id }).from(tenants).where(active).get())) return refuse();
  const identity = { issuer: claims.iss, subject: claims.sub, userId: user.id, createdAt: app.clock.now() };
  await tx.insert(userIdentities).values(identity).onConflictDoNothing();
  return user;
}

async function byIdentity(tx: Db, { iss, sub }: Claims): Promise<UserRow | undefined> {
  const same = and(eq(userIdentities.issuer, iss), eq(userIdentities.subject, sub));
  const found = await tx
    .select()
    .from(userIdentities)
    .innerJoin(users, eq(users.id, userIdentities.userId))
    .where(same)
    .get();
  return found?.users;
}

/** Null for a claim that is no e-mail address. */
function emailOf({ email }: Claims): string | null {
  const parsed = v.safeParse(EmailAddress, email);
  return parsed.success ? parsed.output : null;
}

const withEmail = (tx: Db, email: string) => tx.select().from(users).where(eq(users.emailAddress, email)).get();

/** An address that the provider did not verify may be another person's. */
async function byEmail(tx: Db, claims: Claims): Promise<UserRow | undefined> {
  const email = emailOf(claims);
  return email !== null && claims.email_verified === true ? withEmail(tx, email) : undefined;
}

async function create(tx: Db, app: App, claims: Claims, passwordHash: string): Promise<UserRow> {
  const { oidc_tenant_claim: claim } = app.config;
  const slug = claim === undefined ? undefined : claims[claim];
  const emailAddress = emailOf(claims);
  if (typeof slug !== "string" || emailAddress === null || (await withEmail(tx, emailAddress))) return refuse();
  const tenant = await tx.select({ id: tenants.id }).from(tenants).where(eq(tenants.slug, slug)).get();
  if (!tenant) return refuse();
  const name = typeof claims.name === "string" && claims.name.trim() !== "" ? claims.name.trim().slice(0, 200) : null;
  const user = { tenantId: tenant.id, emailAddress, passwordHash, role: roleOf(app, claims), name };
  return insertUser(tx, user, app.clock.now());
}

/** The role that the claim names, or the first of several; an unknown one is `viewer`. */
function roleOf({ config }: App, claims: Claims): Role {
  const named = config.oidc_role_claim === undefined ? undefined : claims[config.oidc_role_claim];
  return ROLES.find((role) => [named].flat().includes(role)) ?? "viewer";
}

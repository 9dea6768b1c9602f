import { and, eq, inArray, isNull, sql } from "drizzle-orm";
import * as v from "valibot";
import type { App } from "#app.ts";
import { HttpError } from "#lib/base";
import { ROLES, type Role } from "#model/enums.ts";
import type { Db } from "#storage/db/open.ts";
import { sessions, tenants, type UserRow, userIdentities, users } from "#storage/db/schema.ts";
import { insertUser } from "../devices/insert-user.ts";
import { revokeDevices } from "../devices/revoke.ts";
import { EmailAddress } from "../devices/schema.ts";
import type { Claims } from "./claims.ts";
import { namesIn } from "./named-claim.ts";

const MAX_NAME = 200;

const refuse = (): never => {
  throw new HttpError(401, "unauthorized", "This account belongs to no user of this server.");
};

/**
 * The user of an account at the provider: by issuer and subject, else by a verified e-mail address, else a new user of the tenant that
 * a claim names. `unusable` is the hash of a password that no one has. Throws 401.
 */
export async function linkedUser(tx: Db, app: App, claims: Claims, unusable: string): Promise<UserRow> {
  const user =
    (await byIdentity(tx, claims)) ?? (await byEmail(tx, app, claims)) ?? (await create(tx, app, claims, unusable));
  const active = and(eq(tenants.id, user.tenantId), eq(tenants.status, "active"), isNull(tenants.deleteRequestedAt));
  if (!(await tx.select({ id: tenants.id }).from(tenants).where(active).get())) return refuse();
  await link(tx, app, claims, user);
  return user;
}

/** What was verified once stays so. */
async function link(tx: Db, app: App, claims: Claims, { id, emailAddress }: UserRow): Promise<void> {
  const isItsAddress = isVerified(claims) && addressIn(claims.email) === emailAddress;
  await tx
    .insert(userIdentities)
    .values({
      issuer: claims.iss,
      subject: claims.sub,
      userId: id,
      isVerified: isItsAddress,
      createdAt: app.clock.now(),
    })
    .onConflictDoUpdate({
      target: [userIdentities.issuer, userIdentities.subject],
      set: { isVerified: sql`is_verified OR excluded.is_verified` },
    });
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
function addressIn(claim: unknown): string | null {
  const parsed = v.safeParse(EmailAddress, claim);
  return parsed.success ? parsed.output : null;
}

/** Amazon Cognito and Apple send a text. */
const isVerified = ({ email_verified }: Claims): boolean => email_verified === true || email_verified === "true";

const withEmail = (tx: Db, email: string) => tx.select().from(users).where(eq(users.emailAddress, email)).get();

/**
 * An address that the provider did not verify may be another person's. An account that became this user with such an address loses it:
 * a person who registered an address of somebody else must not share the user with its owner.
 */
async function byEmail(tx: Db, app: App, claims: Claims): Promise<UserRow | undefined> {
  const email = addressIn(claims.email);
  const user = email !== null && isVerified(claims) ? await withEmail(tx, email) : undefined;
  if (user === undefined) return undefined;
  // Everyone can set an address that is another person's.
  if (user.isEmailOwn) return refuse();
  const doubtful = and(eq(userIdentities.userId, user.id), eq(userIdentities.isVerified, false));
  const lost = await tx.delete(userIdentities).where(doubtful).returning();
  if (lost.length > 0) {
    await tx.delete(sessions).where(eq(sessions.userId, user.id));
    await revokeDevices(tx, app, user.id);
  }
  return user;
}

async function create(tx: Db, app: App, claims: Claims, passwordHash: string): Promise<UserRow> {
  // Entra ID has the address of many accounts only there.
  const emailAddress = addressIn(claims.email) ?? addressIn(claims.preferred_username);
  const tenantId = await tenantOf(tx, app, claims);
  if (tenantId === null || emailAddress === null || (await withEmail(tx, emailAddress))) return refuse();
  const user = { tenantId, emailAddress, passwordHash, role: roleOf(app, claims), name: nameOf(claims) };
  return insertUser(tx, user, app.clock.now());
}

/** The tenant whose slug the claim has; null where it has none, or several tenants. */
async function tenantOf(tx: Db, { config }: App, claims: Claims): Promise<number | null> {
  const slugs = namesIn(claims, config.oidc_tenant_claim);
  const [first, ...others] = await tx
    .select({ id: tenants.id })
    .from(tenants)
    .where(inArray(tenants.slug, slugs))
    .limit(2);
  return first && others.length === 0 ? first.id : null;
}

/** The role that the claim names, or the first of several; an unknown one is `viewer`. */
function roleOf({ config }: App, claims: Claims): Role {
  const names = namesIn(claims, config.oidc_role_claim);
  return ROLES.find((role) => names.includes(role)) ?? "viewer";
}

function nameOf({ name }: Claims): string | null {
  if (typeof name !== "string") return null;
  const plain = name
    .slice(0, MAX_NAME)
    .toWellFormed()
    .replaceAll(/[\p{Cc}\uFFFD]/gu, " ")
    .trim();
  return plain === "" ? null : plain;
}

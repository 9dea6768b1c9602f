import { and, count, eq, isNull, sql } from "drizzle-orm";
import type { SQLiteColumn } from "drizzle-orm/sqlite-core";
import type * as v from "valibot";
import type { App } from "#app.ts";
import { HttpError, invalid, notFound } from "#lib/base";
import { builtInOf, faultOf } from "#media/encoding-profiles.ts";
import { type Caller, tenantFor } from "#platform/http/caller.ts";
import type { ProfileDefinition } from "#protocol/encoding-profile.ts";
import type { Db } from "#storage/db/open.ts";
import { type EncodingProfileRow, encodingProfiles, liveChannels, tenants } from "#storage/db/schema.ts";
import { ownProfile } from "./queries.ts";
import type { ProfilePatch, ProfileWrite } from "./schema.ts";

const MAX_PROFILES = 100;

/**
 * The tenant whose profiles a request changes; null for the operator's. Throws 404 for a tenant that is not the caller's,
 * and for one that does not exist.
 */
export async function profileOwner(db: Db, caller: Caller, named: number | null | undefined): Promise<number | null> {
  const owner = tenantFor(caller, named ?? undefined) ?? null;
  if (owner === null) return null;
  const kept = and(eq(tenants.id, owner), isNull(tenants.deleteRequestedAt));
  return (await db.select({ id: tenants.id }).from(tenants).where(kept).get())?.id ?? notFound("tenant");
}

/** Throws 422 for a definition that no worker can obey. */
function checked(definition: ProfileDefinition): ProfileDefinition {
  const fault = faultOf(definition);
  return fault ? invalid(fault.field, fault.reason) : definition;
}

const exists = (message: string): never => {
  throw new HttpError(409, "encoding_profile_exists", message);
};

/** Throws 404 as above, 409 `encoding_profile_exists`, 422 for an impossible definition or too many profiles. */
export async function createProfile(
  tx: Db,
  app: App,
  caller: Caller,
  { name, tenant_id, ...definition }: v.InferOutput<typeof ProfileWrite>,
): Promise<EncodingProfileRow> {
  const owner = await profileOwner(tx, caller, tenant_id);
  if (builtInOf(name)) exists(`${name} is a built-in encoding profile; choose another name.`);
  if (await ownProfile(tx, owner, name)) exists(`The encoding profile ${name} exists already.`);
  const ofOwner = owner === null ? isNull(encodingProfiles.tenantId) : eq(encodingProfiles.tenantId, owner);
  const held = await tx.select({ profiles: count() }).from(encodingProfiles).where(ofOwner).get();
  if ((held?.profiles ?? 0) >= MAX_PROFILES)
    throw new HttpError(422, "encoding_profile_limit_reached", `There are ${MAX_PROFILES} encoding profiles already.`);
  const now = app.clock.now();
  return tx
    .insert(encodingProfiles)
    .values({ tenantId: owner, name, definition: checked(definition), createdAt: now, updatedAt: now })
    .returning()
    .get();
}

/** The profile that a request changes. Throws 404 for one that is built in, or of another owner. */
const requireOwn = async (tx: Db, owner: number | null, name: string): Promise<EncodingProfileRow> =>
  (await ownProfile(tx, owner, name)) ?? notFound("encoding profile");

type Named = { name: string; tenantId: number | undefined };

/** Sets the given fields. Jobs that are queued already are not affected. Throws 404, and 422 as above. */
export async function updateProfile(
  tx: Db,
  app: App,
  caller: Caller,
  { name, tenantId }: Named,
  change: v.InferOutput<typeof ProfilePatch>,
): Promise<EncodingProfileRow> {
  const row = await requireOwn(tx, await profileOwner(tx, caller, tenantId), name);
  const definition = checked({ ...(row.definition as ProfileDefinition), ...change });
  return put(tx, app, row, { definition });
}

/** Sets the image of the watermark, which is stored already. Throws 404; 422 for a profile without a watermark. */
export async function setImage(tx: Db, app: App, caller: Caller, { name, tenantId }: Named, sha256: string) {
  const row = await requireOwn(tx, await profileOwner(tx, caller, tenantId), name);
  if (!(row.definition as ProfileDefinition).watermark)
    invalid("watermark", "is null in this profile; set its position first");
  return put(tx, app, row, { watermark: sha256 });
}

const put = (tx: Db, app: App, row: EncodingProfileRow, columns: Partial<EncodingProfileRow>) =>
  tx
    .update(encodingProfiles)
    .set({ ...columns, version: sql`${encodingProfiles.version} + 1`, updatedAt: app.clock.now() })
    .where(eq(encodingProfiles.id, row.id))
    .returning()
    .get();

/** Throws 404, and 409 `encoding_profile_in_use` for the default of a tenant and the profile of a live channel. */
export async function deleteProfile(tx: Db, caller: Caller, { name, tenantId }: Named): Promise<void> {
  const owner = await profileOwner(tx, caller, tenantId);
  const row = await requireOwn(tx, owner, name);
  const ofTenant = and(eq(tenants.defaultEncodingProfile, name), isUser(owner, tenants.id, name));
  const inUse = (message: string) => new HttpError(409, "encoding_profile_in_use", `${name} is ${message}`);
  if (await tx.select({ id: tenants.id }).from(tenants).where(ofTenant).limit(1).get())
    throw inUse(
      `the default encoding profile of ${owner === null ? "a tenant" : "the tenant"}; choose another default first.`,
    );
  const ofChannel = and(
    eq(liveChannels.encodingProfile, name),
    isNull(liveChannels.revokedAt),
    isUser(owner, liveChannels.tenantId, name),
  );
  const channel = await tx.select({ name: liveChannels.channel }).from(liveChannels).where(ofChannel).limit(1).get();
  if (channel)
    throw inUse(
      `the encoding profile of ${owner === null ? "a live channel" : `the live channel ${channel.name}`}; choose another for it first.`,
    );
  await tx.delete(encodingProfiles).where(eq(encodingProfiles.id, row.id));
}

/** The tenants for whom `name` is the profile of `owner`: one with a profile of the same name does not use the operator's. */
const isUser = (owner: number | null, tenant: SQLiteColumn, name: string) =>
  owner === null
    ? sql`not exists (select 1 from ${encodingProfiles} where ${encodingProfiles.tenantId} = ${tenant} and ${encodingProfiles.name} = ${name})`
    : eq(tenant, owner);

import { and, asc, eq, gt, isNull, or, type SQL, sql } from "drizzle-orm";
import { HttpError } from "#lib/base";
import { BUILT_IN_PROFILES, type BuiltInName, builtInOf, specOf } from "#media/encoding-profiles.ts";
import type { EncodingSpec } from "#media/encoding-spec.ts";
import type { Caller } from "#platform/http/caller.ts";
import { PROFILE_NAME, type ProfileDefinition } from "#protocol/encoding-profile.ts";
import type { Db } from "#storage/db/open.ts";
import { type EncodingProfileRow, encodingProfiles } from "#storage/db/schema.ts";

/** A profile as it is used; `row` is null for a built-in one. `watermark`: SHA-256 of the image, null without one. */
export type Profile = {
  row: EncodingProfileRow | null;
  name: string;
  definition: ProfileDefinition;
  watermark: string | null;
};

export const DEFAULT_PROFILE = "default" satisfies BuiltInName;

/** A row as a profile. */
export const ofRow = (row: EncodingProfileRow): Profile => ({
  row,
  name: row.name,
  definition: row.definition as ProfileDefinition,
  watermark: row.watermark,
});
const builtIn = (name: string): Profile | null => {
  const found = builtInOf(name);
  return found ? { row: null, name, definition: found.definition, watermark: null } : null;
};
const BUILT_IN: readonly Profile[] = Object.keys(BUILT_IN_PROFILES).flatMap((name) => builtIn(name) ?? []);

const { tenantId, name: nameColumn, id } = encodingProfiles;
/** Written as the expression of the index. */
const isNamed = (owner: number | null, name: string): SQL | undefined =>
  and(sql`coalesce(${tenantId}, 0) = ${owner ?? 0}`, eq(nameColumn, name));

/** The profile of exactly this owner, the operator for null; undefined for a built-in one. */
export const ownProfile = (db: Db, owner: number | null, name: string): Promise<EncodingProfileRow | undefined> =>
  db.select().from(encodingProfiles).where(isNamed(owner, name)).get();

/**
 * The profile that `name` means for a tenant, or for the operator: its own, the operator's, or a built-in one. A query may
 * contain any text.
 */
export async function findProfile(db: Db, owner: number | null, name: string): Promise<Profile | null> {
  if (!PROFILE_NAME.test(name)) return null;
  const row = (owner === null ? undefined : await ownProfile(db, owner, name)) ?? (await ownProfile(db, null, name));
  return row ? ofRow(row) : builtIn(name);
}

/**
 * The profile that is to be used for a tenant's asset. Throws 422 `encoding_profile_unknown`, also for another tenant's,
 * and `watermark_missing` for one whose image was never set.
 */
export async function requireProfile(db: Db, owner: number, name: string): Promise<Profile> {
  const profile = await findProfile(db, owner, name);
  if (!profile) throw new HttpError(422, "encoding_profile_unknown", `There is no encoding profile named ${name}.`);
  if (profile.definition.watermark && profile.watermark === null)
    throw new HttpError(
      422,
      "watermark_missing",
      `The encoding profile ${name} has a watermark without an image; set it with PUT /encoding_profiles/${name}/watermark.`,
    );
  return profile;
}

/** The encoding specification of a profile. */
export const specOfProfile = ({ row, name, definition, watermark }: Profile): EncodingSpec =>
  specOf(definition, watermark, row === null ? builtInOf(name) : undefined);

/** Built-in profiles have negative ids in the order of a list. */
const listId = (profile: Profile) => profile.row?.id ?? BUILT_IN.indexOf(profile) - BUILT_IN.length;
export type ListedProfile = Profile & { id: number };

/** Those that the caller can use: built-in ones, the operator's and its own, by id; up to `limit` + 1. */
export async function listProfiles(
  db: Db,
  caller: Caller,
  { limit, after, owner }: { limit: number; after: number | undefined; owner: number | undefined },
): Promise<ListedProfile[]> {
  const from = after ?? -BUILT_IN.length - 1;
  const first = BUILT_IN.filter((profile) => listId(profile) > from);
  const visible = caller.kind === "key" ? caller.tenantId : owner;
  const isVisible =
    caller.kind === "admin" && visible === undefined ? undefined : or(isNull(tenantId), eq(tenantId, visible ?? -1));
  const rows = await db
    .select()
    .from(encodingProfiles)
    .where(and(isVisible, gt(id, Math.max(0, from))))
    .orderBy(asc(id))
    .limit(limit + 1)
    .all();
  return [...first, ...rows.map(ofRow)].map((profile) => ({ ...profile, id: listId(profile) })).slice(0, limit + 1);
}

import { eq } from "drizzle-orm";
import type { App } from "#app.ts";
import { HttpError } from "#lib/base";
import { PER_TITLE } from "#lib/codecs";
import { type EncodingSpec, encodingSpec } from "#media/encoding-spec.ts";
import type { Caller } from "#platform/http/caller.ts";
import type { Title } from "#protocol/encoding-spec.ts";
import type { Db } from "#storage/db/open.ts";
import { type AssetRow, type JobRow, type TenantRow, transcodingJobs } from "#storage/db/schema.ts";
import { DEFAULT_PROFILE, findProfile, requireProfile, specOfProfile } from "../encoding-profiles/queries.ts";
import { keepImage } from "../encoding-profiles/watermark.ts";
import { requireTenant } from "../tenants/queries.ts";

/**
 * The name of the profile of a new asset. Throws 422 `encoding_profile_unknown` and `watermark_missing` for one that
 * cannot be used.
 */
export async function profileFor(tx: Db, tenant: TenantRow, named: string | null | undefined): Promise<string> {
  return (await requireProfile(tx, tenant.id, named ?? tenant.defaultEncodingProfile ?? DEFAULT_PROFILE)).name;
}

export type MediaProfile = Pick<JobRow, "profile" | "encodingSpec">;

/** The profile of the media that a job published last: until it is completed again, it may have been given another one. */
export const publishedProfile = ({ status, profile, encodingSpec, mediaProfile }: JobRow): MediaProfile =>
  (status === "completed" ? null : mediaProfile) ?? { profile, encodingSpec };

/**
 * What a job keeps of its asset's profile, so that all of its parts are encoded alike, whatever becomes of the profile.
 * The built-in default replaces a profile that was deleted after the asset was created.
 */
export async function profileOfJob(
  tx: Db,
  app: App,
  { tenantId, encodingProfile }: Pick<AssetRow, "tenantId" | "encodingProfile">,
): Promise<MediaProfile> {
  const profile = await findProfile(tx, tenantId, encodingProfile ?? DEFAULT_PROFILE);
  if (!profile || profile.name === DEFAULT_PROFILE) return { profile: DEFAULT_PROFILE, encodingSpec: null };
  if (profile.watermark) await keepImage(tx, app, profile.watermark);
  return { profile: profile.name, encodingSpec: specOfProfile(profile) };
}

/**
 * Keeps the rungs that were chosen for the source of a job: all later tasks and attempts encode them. Without effect for a job
 * that did not ask for the choice.
 */
export async function keepTitle(tx: Db, { id, encodingSpec: own }: JobRow, title: Title): Promise<void> {
  const spec = own as EncodingSpec | null;
  if (spec?.video.rate_control !== PER_TITLE) return;
  const chosen = { ...spec, video: { ...spec.video, title } };
  await tx.update(transcodingJobs).set({ encodingSpec: chosen }).where(eq(transcodingJobs.id, id));
}

/** Whether a job may have renditions in more video codecs than the primary one: encoded, or copied from its source. */
export function hasAdditional({ encodingSpec: own }: Pick<JobRow, "encodingSpec">): boolean {
  const { additional = [], original } = (own as EncodingSpec | null)?.video ?? {};
  return additional.length > 0 || (original?.codecs ?? []).length > 1;
}

/** The specification of a job, as its contract has it. */
export function specOfJob(app: App, { encodingSpec: own }: JobRow): EncodingSpec {
  const spec = own === null ? encodingSpec : (own as EncodingSpec);
  return withImage(spec, (sha256) => `${app.baseUrl()}/api/v1/watermarks/${sha256}`);
}

/** The specification of a profile, for clients that encode themselves. Throws 404, 422 `encoding_profile_unknown`. */
export async function specForClient(
  app: App,
  caller: Caller,
  { profile: name, tenant_id }: { profile?: string | undefined; tenant_id?: number | undefined },
): Promise<EncodingSpec> {
  // The operator's profiles, for the admin token without a tenant.
  const tenant =
    caller.kind === "key" || tenant_id !== undefined ? await requireTenant(app.db, caller, tenant_id) : null;
  const wanted = name ?? tenant?.defaultEncodingProfile ?? DEFAULT_PROFILE;
  const profile = tenant ? await requireProfile(app.db, tenant.id, wanted) : await findProfile(app.db, null, wanted);
  if (!profile) throw new HttpError(422, "encoding_profile_unknown", `There is no encoding profile named ${wanted}.`);
  const query = tenant && caller.kind !== "key" ? `?tenant_id=${tenant.id}` : "";
  return withImage(
    specOfProfile(profile),
    () => `${app.baseUrl()}/api/v1/encoding_profiles/${profile.name}/watermark${query}`,
  );
}

function withImage(spec: EncodingSpec, urlOf: (sha256: string) => string): EncodingSpec {
  const { watermark } = spec.video;
  if (!watermark) return spec;
  const image = { ...watermark.image, url: urlOf(watermark.image.sha256) };
  return { ...spec, video: { ...spec.video, watermark: { ...watermark, image } } };
}

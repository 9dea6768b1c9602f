import type * as v from "valibot";
import type { App } from "#app.ts";
import { invalid, notFound } from "#lib/base";
import type { Caller } from "#platform/http/caller.ts";
import { toColumns } from "#platform/http/records.ts";
import type { Db } from "#storage/db/open.ts";
import type { TenantRow } from "#storage/db/schema.ts";
import { requireProfile } from "../encoding-profiles/queries.ts";
import { findTenant, putTenant, refuseDeleting } from "./queries.ts";
import { playerOf, type TenantPatch, type TenantSettings, toTenant } from "./schema.ts";

/** The tenant that the caller may access, by id or slug. Throws 404. */
export const ownTenant = async (db: Db, caller: Caller, ref: string): Promise<TenantRow> =>
  (await findTenant(db, caller, ref)) ?? notFound("tenant");

/**
 * Changes what `body` names; `player` is merged. Throws 409 `tenant_deleting`, and 422 for an unknown encoding profile or
 * another `logo_url`.
 */
export async function changeTenant(
  tx: Db,
  app: App,
  row: TenantRow,
  body: v.InferOutput<typeof TenantPatch>,
): Promise<TenantRow> {
  const tenant = refuseDeleting(row);
  const { player: { logo_url, ...player } = {}, ...settings } = body;
  if (settings.default_encoding_profile) await requireProfile(tx, tenant.id, settings.default_encoding_profile);
  if (logo_url !== undefined && logo_url !== playerOf(tenant, app.baseUrl()).logo_url)
    invalid("player.logo_url", "is changed with PUT or DELETE /api/v1/tenants/{id}/logo");
  return putTenant(tx, {
    ...tenant,
    ...toColumns(settings),
    player: { ...tenant.player, ...player },
    updatedAt: app.clock.now(),
  });
}

/** The part of a body that the tenant's own admins may change. Throws 422 for another value of one of the operator's fields. */
export function requireOperatorsFields(
  app: App,
  tenant: TenantRow,
  { plan_name, status, slug, ...settings }: v.InferOutput<typeof TenantSettings>,
): v.InferOutput<typeof TenantPatch> {
  const current = toTenant(tenant, app.baseUrl());
  for (const [name, value] of Object.entries({ plan_name, status, slug }))
    if (value !== undefined && value !== current[name as "slug"]) invalid(name, "is changed by the operator");
  return settings;
}

import { and, asc, eq, gt, isNull, sql } from "drizzle-orm";
import type * as v from "valibot";
import { type App, forApp } from "#app.ts";
import { HttpError, notFound } from "#lib/base";
import { type Caller, ownerOf, tenantFor } from "#platform/http/caller.ts";
import { readPage } from "#platform/http/list-cache.ts";
import { toColumns } from "#platform/http/records.ts";
import { cacheUntilCommit } from "#storage/db/commit-cache.ts";
import type { Db } from "#storage/db/open.ts";
import { type Given, prepared, preparedFor } from "#storage/db/prepared.ts";
import { type TenantRow, tenants } from "#storage/db/schema.ts";
import { playerOf, type TenantWrite } from "./schema.ts";

const tenantsPage = preparedFor((db, given: Given<"owner" | "id" | "after">) =>
  db
    .select()
    .from(tenants)
    .where(
      and(
        given.owner && eq(tenants.id, given.owner),
        given.id && eq(tenants.id, given.id),
        given.after && gt(tenants.id, given.after),
      ),
    )
    .orderBy(asc(tenants.id))
    .limit(sql.placeholder("limit"))
    .prepare(),
);

/** In order of creation, up to `limit` + 1. */
export const listTenants = (
  app: App,
  caller: Caller,
  { limit, after, id }: { limit: number; after?: number | undefined; id?: number | undefined },
): Promise<TenantRow[]> => readPage(app, tenantsPage, { owner: ownerOf(caller), id, after, limit: limit + 1 });

const byId = prepared((db) =>
  db
    .select()
    .from(tenants)
    .where(eq(tenants.id, sql.placeholder("id")))
    .prepare(),
);
const bySlug = prepared((db) =>
  db
    .select()
    .from(tenants)
    .where(eq(tenants.slug, sql.placeholder("slug")))
    .prepare(),
);

/** By id or slug, as operators name it. */
export async function findTenant(db: Db, caller: Caller, ref: string): Promise<TenantRow | undefined> {
  const tenant = await (/^\d{1,15}$/.test(ref) ? byId(db).get({ id: Number(ref) }) : bySlug(db).get({ slug: ref }));
  return tenant && (caller.kind === "admin" || (caller.kind === "key" && caller.tenantId === tenant.id))
    ? tenant
    : undefined;
}

const put = prepared((db) =>
  db
    .update(tenants)
    .set({
      name: sql`${sql.placeholder("name")}`,
      planName: sql`${sql.placeholder("planName")}`,
      defaultPlaybackPolicy: sql`${sql.placeholder("defaultPlaybackPolicy")}`,
      allowedOrigins: sql`${sql.placeholder("allowedOrigins")}`,
      status: sql`${sql.placeholder("status")}`,
      earlyPlayback: sql`${sql.placeholder("earlyPlayback")}`,
      deleteSourcesAfterDays: sql`${sql.placeholder("deleteSourcesAfterDays")}`,
      deleteAnalyticsAfterDays: sql`${sql.placeholder("deleteAnalyticsAfterDays")}`,
      defaultEncodingProfile: sql`${sql.placeholder("defaultEncodingProfile")}`,
      language: sql`${sql.placeholder("language")}`,
      player: sql`${sql.placeholder("player")}`,
      logo: sql`${sql.placeholder("logo")}`,
      updatedAt: sql`${sql.placeholder("updatedAt")}`,
    })
    .where(eq(tenants.id, sql.placeholder("id")))
    .returning()
    .prepare(),
);

/** `fields`: as validated by `TenantWrite`, with its defaults. */
export const insertTenant = (tx: Db, fields: v.InferOutput<typeof TenantWrite>, now: number): Promise<TenantRow> =>
  tx
    .insert(tenants)
    .values({
      ...toColumns(fields),
      createdAt: now,
      updatedAt: now,
    })
    .returning()
    .get();

/** All columns of a tenant that can change, in one prepared statement. */
export const putTenant = (tx: Db, tenant: TenantRow): Promise<TenantRow> =>
  put(tx).get({
    ...tenant,
    allowedOrigins: JSON.stringify(tenant.allowedOrigins),
    player: JSON.stringify(tenant.player),
    earlyPlayback: tenant.earlyPlayback === null ? null : Number(tenant.earlyPlayback),
  });

const remembered = forApp((app) =>
  cacheUntilCommit(app.commits, (id: number) => app.db.select().from(tenants).where(eq(tenants.id, id)).get()),
);

/** How the player of a tenant looks, for frequent requests. `baseUrl`: before the path of the logo. */
export async function rememberedPlayer(app: App, tenantId: number, baseUrl: string) {
  const tenant = await remembered(app)(tenantId);
  return playerOf(tenant ?? { id: tenantId, logo: null, player: {} }, baseUrl);
}

/** Origins that may embed a tenant's player page, for frequent requests. */
export const allowedOriginsOf = async (app: App, tenantId: number): Promise<readonly string[]> =>
  (await remembered(app)(tenantId))?.allowedOrigins ?? [];

/**
 * The tenant of a creating request. Throws 422 when the admin token names none, 404 for another's, an unknown one, or one
 * that is being deleted.
 */
export async function requireTenant(db: Db, caller: Caller, named: number | undefined): Promise<TenantRow> {
  const id = tenantFor(caller, named);
  if (id === undefined)
    throw new HttpError(422, "parameter_missing", "tenant_id: is required with the admin token", {
      details: { tenant_id: ["is required"] },
    });
  const kept = and(eq(tenants.id, id), isNull(tenants.deleteRequestedAt));
  return (await db.select().from(tenants).where(kept).get()) ?? notFound("tenant");
}

/** Returns `tenant`. Throws 409 when it is being deleted. */
export function refuseDeleting(tenant: TenantRow): TenantRow {
  if (tenant.deleteRequestedAt === null) return tenant;
  throw new HttpError(409, "tenant_deleting", `The tenant ${tenant.slug} is being deleted.`);
}

export const tenantById = (db: Db, id: number): Promise<TenantRow | undefined> =>
  db.select().from(tenants).where(eq(tenants.id, id)).get();

import { and, asc, eq, gt, sql } from "drizzle-orm";
import { cacheUntilCommit } from "../../../storage/db/commit-cache.ts";
import type { Db } from "../../../storage/db/open.ts";
import { prepared } from "../../../storage/db/prepared.ts";
import { type TenantRow, tenants } from "../../../storage/db/schema.ts";
import { type App, forApp } from "../../app.ts";
import { type Caller, ownedBy, tenantFor } from "../../http/caller.ts";
import { HttpError, notFound } from "../../lib/errors.ts";

/** In the order of their making, up to `limit` + 1. */
export const listTenants = (
  db: Db,
  caller: Caller,
  page: { limit: number; after?: number | undefined; id?: number | undefined },
): Promise<TenantRow[]> =>
  db
    .select()
    .from(tenants)
    .where(
      and(
        ownedBy(caller, tenants.id),
        page.id === undefined ? undefined : eq(tenants.id, page.id),
        page.after === undefined ? undefined : gt(tenants.id, page.after),
      ),
    )
    .orderBy(asc(tenants.id))
    .limit(page.limit + 1)
    .all();

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

/** By id or slug, as an operator names it. */
export async function findTenant(db: Db, caller: Caller, ref: string): Promise<TenantRow | undefined> {
  const found = await (/^\d{1,15}$/.test(ref) ? byId(db).get({ id: Number(ref) }) : bySlug(db).get({ slug: ref }));
  return found && (caller.kind === "admin" || (caller.kind === "key" && caller.tenantId === found.id))
    ? found
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
      updatedAt: sql`${sql.placeholder("updatedAt")}`,
    })
    .where(eq(tenants.id, sql.placeholder("id")))
    .returning()
    .prepare(),
);

/** All of a tenant that can be changed, as it shall be: one prepared statement, whatever of it is new. */
export const putTenant = (tx: Db, tenant: TenantRow): Promise<TenantRow> =>
  put(tx).get({ ...tenant, allowedOrigins: JSON.stringify(tenant.allowedOrigins) });

const remembered = forApp((app) =>
  cacheUntilCommit(app.commits, (id: number) => app.db.select().from(tenants).where(eq(tenants.id, id)).get()),
);

/** Whose pages may frame a tenant's embed page, for requests that come by the thousand. */
export const allowedOriginsOf = async (app: App, tenantId: number): Promise<readonly string[]> =>
  (await remembered(app)(tenantId))?.allowedOrigins ?? [];

/** The tenant that a creating request is for. 422 when the admin token names none, 404 for another's or an unknown one. */
export async function requireTenant(db: Db, caller: Caller, named: number | undefined): Promise<TenantRow> {
  const id = tenantFor(caller, named);
  if (id === undefined)
    throw new HttpError(422, "parameter_missing", "tenant_id: is required with the admin token", {
      details: { tenant_id: ["is required"] },
    });
  return (await db.select().from(tenants).where(eq(tenants.id, id)).get()) ?? notFound("tenant");
}

import { eq } from "drizzle-orm";
import * as v from "valibot";
import { tenants } from "../../../storage/db/schema.ts";
import { decodeCursor, page, UNPAGED } from "../../http/paging.ts";
import { route } from "../../http/route.ts";
import { Paging } from "../../http/schemas.ts";
import { HttpError, notFound } from "../../lib/errors.ts";
import { findTenant, listTenants, putTenant } from "./queries.ts";
import { Tenant, TenantPatch, TenantWrite, toTenant } from "./schema.ts";

const admin = "/api/v1/admin/tenants";
const Ref = v.object({ ref: v.string() });

export const tenantRoutes = [
  route({
    method: "GET",
    path: "/api/v1/tenants",
    tag: "Tenants",
    summary: "List the tenants visible to the caller",
    query: v.object(Paging),
    responses: { 200: v.array(Tenant) },
    async handle({ app, caller, query, url }) {
      const limit = query.limit ?? UNPAGED;
      const rows = await listTenants(app.db, caller, { limit, after: decodeCursor(query.cursor) });
      return page(rows, limit, url, app.baseUrl(), toTenant);
    },
  }),
  route({
    method: "POST",
    path: admin,
    credential: "admin",
    tag: "Operator",
    summary: "Create a tenant",
    body: TenantWrite,
    responses: { 201: Tenant },
    async handle({ app, body }) {
      const now = app.clock.now();
      return app.write(async (tx) => {
        if (await tx.select({ id: tenants.id }).from(tenants).where(eq(tenants.slug, body.slug)).get()) {
          throw new HttpError(422, "validation_failed", `slug: ${body.slug} is taken`, {
            details: { slug: ["is taken"] },
          });
        }
        const values = {
          name: body.name,
          slug: body.slug,
          planName: body.plan_name,
          defaultPlaybackPolicy: body.default_playback_policy,
          allowedOrigins: body.allowed_origins,
        };
        return toTenant(
          await tx
            .insert(tenants)
            .values({ ...values, createdAt: now, updatedAt: now })
            .returning()
            .get(),
        );
      });
    },
  }),
  route({
    method: "GET",
    path: `${admin}/:ref`,
    credential: "admin",
    tag: "Operator",
    summary: "Get a tenant, by id or slug",
    params: Ref,
    responses: { 200: Tenant },
    handle: async ({ app, caller, params }) =>
      toTenant((await findTenant(app.db, caller, params.ref)) ?? notFound("tenant")),
  }),
  route({
    method: "PATCH",
    path: `${admin}/:ref`,
    credential: "admin",
    tag: "Operator",
    summary: "Update a tenant",
    params: Ref,
    body: TenantPatch,
    responses: { 200: Tenant },
    async handle({ app, caller, params, body }) {
      return app.write(async (tx) => {
        const tenant = (await findTenant(tx, caller, params.ref)) ?? notFound("tenant");
        return toTenant(
          await putTenant(tx, {
            ...tenant,
            name: body.name ?? tenant.name,
            planName: body.plan_name ?? tenant.planName,
            defaultPlaybackPolicy: body.default_playback_policy ?? tenant.defaultPlaybackPolicy,
            allowedOrigins: body.allowed_origins ?? tenant.allowedOrigins,
            status: body.status ?? tenant.status,
            updatedAt: app.clock.now(),
          }),
        );
      });
    },
  }),
];

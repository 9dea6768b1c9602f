import { eq } from "drizzle-orm";
import * as v from "valibot";
import { HttpError, notFound } from "#lib/base";
import { byId, page } from "#platform/http/paging.ts";
import { route } from "#platform/http/route.ts";
import { Paging } from "#platform/http/schemas.ts";
import { tenants } from "#storage/db/schema.ts";
import { changeTenant, ownTenant } from "./change.ts";
import { requestDeletion } from "./deletion.ts";
import { findTenant, insertTenant, listTenants } from "./queries.ts";
import { Tenant, TenantDeletion, TenantPatch, TenantWrite, toTenant } from "./schema.ts";

const admin = "/api/v1/admin/tenants";
const Ref = v.object({ ref: v.pipe(v.string(), v.description("Id or slug")) });

export const tenantRoutes = [
  route({
    method: "GET",
    path: "/api/v1/tenants",
    tag: "Tenants",
    operationId: "listTenants",
    summary: "List the tenants visible to the caller",
    query: v.object(Paging),
    responses: { 200: v.array(Tenant) },
    handle(context) {
      const { app, caller, query } = context;
      const batches = byId(query.cursor, (after, limit) => listTenants(app, caller, { limit, after }));
      return page(context, { batches, toWire: (row) => toTenant(row, app.baseUrl()) });
    },
  }),
  route({
    method: "POST",
    path: admin,
    credential: "admin",
    tag: "Operator",
    operationId: "createTenant",
    summary: "Create a tenant",
    body: TenantWrite,
    idempotent: {},
    responses: { 201: Tenant },
    async handle({ app, body, commit }) {
      const now = app.clock.now();
      return commit(async (tx) => {
        if (await tx.select({ id: tenants.id }).from(tenants).where(eq(tenants.slug, body.slug)).get()) {
          throw new HttpError(422, "validation_failed", `slug: ${body.slug} is taken`, {
            details: { slug: ["is taken"] },
          });
        }
        return toTenant(await insertTenant(tx, body, now), app.baseUrl());
      });
    },
  }),
  route({
    method: "GET",
    path: `${admin}/:ref`,
    credential: "admin",
    tag: "Operator",
    operationId: "getTenant",
    summary: "Get a tenant, by id or slug",
    params: Ref,
    responses: { 200: Tenant },
    handle: async ({ app, caller, params }) => toTenant(await ownTenant(app.db, caller, params.ref), app.baseUrl()),
  }),
  route({
    method: "PATCH",
    path: `${admin}/:ref`,
    credential: "admin",
    tag: "Operator",
    operationId: "updateTenant",
    summary: "Update a tenant",
    params: Ref,
    body: TenantPatch,
    responses: { 200: Tenant },
    errors: { 409: ["tenant_deleting"], 422: ["encoding_profile_unknown", "watermark_missing"] },
    handle: ({ app, caller, params, body }) =>
      app.write(async (tx) =>
        toTenant(await changeTenant(tx, app, await ownTenant(tx, caller, params.ref), body), app.baseUrl()),
      ),
  }),
  route({
    method: "DELETE",
    path: `${admin}/:ref`,
    credential: "admin",
    tag: "Operator",
    operationId: "deleteTenant",
    summary: "Delete a tenant with everything that belongs to it, in the background",
    params: Ref,
    query: v.object({
      confirm: v.optional(v.pipe(v.string(), v.description("The tenant's slug, so that no other one is deleted"))),
    }),
    responses: { 202: TenantDeletion },
    errors: { 422: ["confirmation_required"] },
    async handle({ app, caller, params, query }) {
      return app.write(async (tx) => {
        const tenant = (await findTenant(tx, caller, params.ref)) ?? notFound("tenant");
        await requestDeletion(tx, app, tenant, query.confirm);
        return { id: tenant.id, slug: tenant.slug, status: "deleting" };
      });
    },
  }),
];

import { and, asc, eq, gt } from "drizzle-orm";
import * as v from "valibot";
import { ownedBy } from "#platform/http/caller.ts";
import { byId, page } from "#platform/http/paging.ts";
import { RecordIdInPath } from "#platform/http/parameters.ts";
import { route } from "#platform/http/route.ts";
import { users } from "#storage/db/schema.ts";
import { insertUser } from "../credentials/devices/insert-user.ts";
import { hashPassword } from "../credentials/devices/passwords.ts";
import { revokeDevices } from "../credentials/devices/revoke.ts";
import { requireTenant } from "../tenants/queries.ts";
import { keepAnAdmin, requireFreeEmail, requireUser } from "./queries.ts";
import { TenantUser, toTenantUser, UserPatch, UserQuery, UserWrite } from "./schema.ts";

const path = "/api/v1/users";
const shared = { tag: "Users", forAdmins: true, errors: { 403: ["forbidden_role"] } } as const;
const one = { ...shared, path: `${path}/:id`, params: v.object({ id: RecordIdInPath }) } as const;

export const userRoutes = [
  route({
    ...shared,
    method: "GET",
    path,
    operationId: "listTenantUsers",
    summary: "List the users of the tenant",
    query: UserQuery,
    responses: { 200: v.array(TenantUser) },
    handle(context) {
      const { app, caller, query } = context;
      const named = query.tenant_id === undefined ? undefined : eq(users.tenantId, query.tenant_id);
      const batches = byId(query.cursor, (after, limit) =>
        app.db
          .select()
          .from(users)
          .where(and(ownedBy(caller, users.tenantId), named, after === undefined ? undefined : gt(users.id, after)))
          .orderBy(asc(users.id))
          .limit(limit + 1)
          .all(),
      );
      return page(context, { batches, toWire: toTenantUser });
    },
  }),
  route({
    ...shared,
    method: "POST",
    path,
    audited: true,
    operationId: "createTenantUser",
    summary: "Create a user with a password; see also invitations",
    body: UserWrite,
    idempotent: { secretInputs: ["password"] },
    responses: { 201: TenantUser },
    errors: { ...shared.errors, 404: ["not_found"], 422: ["user_limit_reached"], 503: ["busy"] },
    async handle({ app, caller, body, commit }) {
      await requireTenant(app.db, caller, body.tenant_id);
      const passwordHash = await hashPassword(body.password);
      return commit(async (tx) => {
        const tenant = await requireTenant(tx, caller, body.tenant_id);
        await requireFreeEmail(tx, body.email);
        const { name = null, role } = body;
        const user = { tenantId: tenant.id, emailAddress: body.email, passwordHash, name, role };
        return toTenantUser(await insertUser(tx, user, app.clock.now()));
      });
    },
  }),
  route({
    ...one,
    method: "GET",
    operationId: "getTenantUser",
    summary: "Get a user",
    responses: { 200: TenantUser },
    handle: async ({ app, caller, params }) => toTenantUser(await requireUser(app.db, caller, params.id)),
  }),
  route({
    ...one,
    method: "PATCH",
    audited: true,
    operationId: "updateTenantUser",
    summary: "Change a user; a new password ends the user's sessions and device tokens",
    body: UserPatch,
    responses: { 200: TenantUser },
    errors: { ...shared.errors, 409: ["last_admin"], 503: ["busy"] },
    async handle({ app, caller, params, body }) {
      await requireUser(app.db, caller, params.id);
      const passwordHash = body.password === undefined ? undefined : await hashPassword(body.password);
      return app.write(async (tx) => {
        const user = await requireUser(tx, caller, params.id);
        const { email = user.emailAddress, name = user.name, role = user.role } = body;
        await requireFreeEmail(tx, email, user.id);
        await keepAnAdmin(tx, user, role);
        if (passwordHash !== undefined) await revokeDevices(tx, app, user.id);
        const set = {
          emailAddress: email,
          isEmailOwn: user.isEmailOwn && body.email === undefined,
          name,
          role,
          ...(passwordHash && { passwordHash }),
          updatedAt: app.clock.now(),
        };
        return toTenantUser(await tx.update(users).set(set).where(eq(users.id, user.id)).returning().get());
      });
    },
  }),
  route({
    ...one,
    method: "DELETE",
    audited: true,
    operationId: "deleteTenantUser",
    summary: "Delete a user; sessions and device tokens of the user end",
    responses: { 204: null },
    errors: { ...shared.errors, 409: ["last_admin"] },
    handle: ({ app, caller, params }) =>
      app.write(async (tx) => {
        const user = await requireUser(tx, caller, params.id);
        await keepAnAdmin(tx, user, null);
        await revokeDevices(tx, app, user.id);
        await tx.delete(users).where(eq(users.id, user.id));
      }),
  }),
];

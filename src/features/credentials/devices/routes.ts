import { and, asc, eq, gt, isNull } from "drizzle-orm";
import * as v from "valibot";
import { requireTenant } from "#features/tenants/queries.ts";
import { invalid, iso, notFound } from "#lib/base";
import { byId, page } from "#platform/http/paging.ts";
import { route } from "#platform/http/route.ts";
import { RefField, TenantIdFromClient } from "#protocol/record-fields.ts";
import type { Db } from "#storage/db/open.ts";
import { apiKeys, type UserRow, users } from "#storage/db/schema.ts";
import { insertUser } from "./insert-user.ts";
import { hashPassword } from "./passwords.ts";
import { newPairingCode, redeem } from "./redeem.ts";
import { revokeDevices } from "./revoke.ts";
import { DeviceToken, PairingCode, Redeem, toUser, User, UserPatch, UserQuery, UserWrite } from "./schema.ts";
import { clearSecret } from "./second-factor.ts";

const admin = "/api/v1/admin";
const operator = { credential: "admin", tag: "Operator" } as const;
const Ref = v.object({ ref: RefField });

export const deviceRoutes = [
  route({
    method: "POST",
    path: "/api/v1/device_tokens",
    audited: true,
    credential: "none",
    limit: "device_tokens",
    tag: "Device tokens",
    operationId: "createDeviceToken",
    summary: "Create a device token from email and password, or from a pairing code",
    body: Redeem,
    responses: { 201: DeviceToken },
    errors: {
      401: ["unauthorized", "totp_required"],
      403: ["plan_required"],
      422: ["api_key_limit_reached"],
      503: ["busy"],
    },
    handle: ({ app, body }) => redeem(app, body),
  }),
  route({
    method: "DELETE",
    path: "/api/v1/device_tokens/current",
    audited: true,
    ownAccount: true,
    tag: "Device tokens",
    operationId: "revokeCurrentToken",
    summary: "Revoke the API key of this request",
    responses: { 204: null },
    errors: { 404: ["not_found"] },
    async handle({ app, caller }) {
      if (caller.kind !== "key" || caller.keyId === null || caller.session)
        return notFound("key: this endpoint revokes the API key of the request");
      const { keyId } = caller;
      const now = app.clock.now();
      await app.write(async (tx) =>
        tx
          .update(apiKeys)
          .set({ revokedAt: now, updatedAt: now })
          .where(and(eq(apiKeys.id, keyId), isNull(apiKeys.revokedAt))),
      );
    },
  }),
  route({
    ...operator,
    method: "GET",
    path: `${admin}/users`,
    operationId: "listUsers",
    summary: "List users",
    query: UserQuery,
    responses: { 200: v.array(User) },
    handle(context) {
      const { app, query } = context;
      const batches = byId(query.cursor, (after, limit) =>
        app.db
          .select()
          .from(users)
          .where(
            and(
              query.tenant_id === undefined ? undefined : eq(users.tenantId, query.tenant_id),
              after === undefined ? undefined : gt(users.id, after),
            ),
          )
          .orderBy(asc(users.id))
          .limit(limit + 1)
          .all(),
      );
      return page(context, { batches, toWire: toUser });
    },
  }),
  route({
    ...operator,
    method: "POST",
    path: `${admin}/users`,
    audited: true,
    operationId: "createUser",
    summary: "Create a user",
    body: UserWrite,
    idempotent: { secretInputs: ["password"] },
    responses: { 201: User },
    errors: { 404: ["not_found"], 422: ["user_limit_reached"] },
    async handle({ app, caller, body, commit }) {
      await requireTenant(app.db, caller, body.tenant_id);
      const passwordHash = await hashPassword(body.password);
      return commit(async (tx) => {
        const tenant = await requireTenant(tx, caller, body.tenant_id);
        const sameEmail = eq(users.emailAddress, body.email_address);
        if (await tx.select({ id: users.id }).from(users).where(sameEmail).get()) invalid("email_address", "is taken");
        const { name = null, role } = body;
        const user = { tenantId: tenant.id, emailAddress: body.email_address, passwordHash, name, role };
        return toUser(await insertUser(tx, user, app.clock.now()));
      });
    },
  }),
  route({
    ...operator,
    method: "PATCH",
    path: `${admin}/users/:ref`,
    audited: true,
    operationId: "updateUser",
    summary: "Change a user's role, or password, which revokes the device tokens redeemed with the old one",
    params: Ref,
    body: UserPatch,
    responses: { 200: User },
    async handle({ app, params, body }) {
      if (!(await findUser(app.db, params.ref))) notFound("user");
      const passwordHash = body.password === undefined ? undefined : await hashPassword(body.password);
      return app.write(async (tx) => {
        const user = (await findUser(tx, params.ref)) ?? notFound("user");
        const { role = user.role } = body;
        const set = { role, ...(passwordHash && { passwordHash }), updatedAt: app.clock.now() };
        if (passwordHash !== undefined) await revokeDevices(tx, app, user.id);
        return toUser(await tx.update(users).set(set).where(eq(users.id, user.id)).returning().get());
      });
    },
  }),
  route({
    ...operator,
    method: "DELETE",
    path: `${admin}/users/:ref`,
    audited: true,
    operationId: "deleteUser",
    summary: "Delete a user and revoke the device tokens redeemed with the password",
    params: Ref,
    responses: { 204: null },
    handle: ({ app, params }) =>
      app.write(async (tx) => {
        const user = (await findUser(tx, params.ref)) ?? notFound("user");
        await revokeDevices(tx, app, user.id);
        await tx.delete(users).where(eq(users.id, user.id));
      }),
  }),
  route({
    ...operator,
    method: "DELETE",
    path: `${admin}/users/:ref/totp`,
    audited: true,
    operationId: "clearUserTotp",
    summary: "Switch the second factor of a user off; repeatable",
    params: Ref,
    responses: { 204: null },
    handle: ({ app, params }) =>
      app.write(async (tx) => {
        const user = (await findUser(tx, params.ref)) ?? notFound("user");
        await clearSecret(tx, app, user.id);
      }),
  }),
  route({
    ...operator,
    method: "POST",
    path: `${admin}/pairing_codes`,
    audited: true,
    operationId: "createPairingCode",
    summary: "Create a one-time pairing code, valid for ten minutes",
    body: v.object({ tenant_id: TenantIdFromClient }),
    responses: { 201: PairingCode },
    errors: { 404: ["not_found"] },
    handle: ({ app, caller, body }) =>
      app.write(async (tx) => {
        const tenant = await requireTenant(tx, caller, body.tenant_id);
        const { code, expiresAt } = await newPairingCode(tx, app, tenant);
        return { tenant_id: tenant.id, pairing_code: code, expires_at: iso(expiresAt) };
      }),
  }),
];

/** A user by id or e-mail address. */
export const findUser = (db: Db, ref: string): Promise<UserRow | undefined> =>
  db
    .select()
    .from(users)
    .where(/^\d{1,15}$/.test(ref) ? eq(users.id, Number(ref)) : eq(users.emailAddress, ref.trim().toLowerCase()))
    .get();

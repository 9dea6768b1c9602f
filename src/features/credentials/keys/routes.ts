import { and, desc, eq, isNull, lt } from "drizzle-orm";
import * as v from "valibot";
import { requireTenant } from "#features/tenants/queries.ts";
import { HttpError, invalid, notFound } from "#lib/base";
import { type Caller, ownedBy } from "#platform/http/caller.ts";
import { byId, page } from "#platform/http/paging.ts";
import { RecordIdInPath, TenantIdInQuery } from "#platform/http/parameters.ts";
import { route } from "#platform/http/route.ts";
import { Paging } from "#platform/http/schemas.ts";
import { apiKeys } from "#storage/db/schema.ts";
import { insertKey } from "./insert.ts";
import { requireUsableKey, rotateKey } from "./rotate.ts";
import { ApiKey, KeyRotation, KeyWrite, NewApiKey, toApiKey } from "./schema.ts";

const path = "/api/v1/api_keys";

export const keyRoutes = [
  route({
    method: "GET",
    path,
    scope: ["api_keys:read", "api_keys:write"],
    tag: "API keys",
    operationId: "listApiKeys",
    summary: "List API keys, newest first",
    query: v.object({ ...Paging, tenant_id: v.optional(TenantIdInQuery) }),
    responses: { 200: v.array(ApiKey) },
    handle(context) {
      const { app, caller, query } = context;
      const batches = byId(query.cursor, (before, limit) =>
        app.db
          .select()
          .from(apiKeys)
          .where(
            and(
              ownedBy(caller, apiKeys.tenantId),
              query.tenant_id === undefined ? undefined : eq(apiKeys.tenantId, query.tenant_id),
              before === undefined ? undefined : lt(apiKeys.id, before),
            ),
          )
          .orderBy(desc(apiKeys.id))
          .limit(limit + 1)
          .all(),
      );
      return page(context, { batches, toWire: toApiKey });
    },
  }),
  route({
    method: "POST",
    path,
    audited: true,
    scope: "api_keys:write",
    tag: "API keys",
    operationId: "createApiKey",
    summary: "Create an API key; its token is returned once",
    body: KeyWrite,
    idempotent: { secretFields: ["token"] },
    responses: { 201: NewApiKey },
    errors: { 403: ["plan_required"], 404: ["not_found"], 422: ["api_key_limit_reached", "idempotency_key_reused"] },
    async handle({ app, caller, body, commit }) {
      const now = app.clock.now();
      const expiresAt = body.expires_at ? Date.parse(body.expires_at) : null;
      if (expiresAt !== null && expiresAt <= now) invalid("expires_at", "must be in the future");
      return commit(async (tx) => {
        const tenant = await requireTenant(tx, caller, body.tenant_id);
        const scopes = grantable(caller, body.scopes);
        const { row, token } = await insertKey(tx, { tenant, name: body.name, scopes, expiresAt, now });
        return { ...toApiKey(row), token };
      });
    },
  }),
  route({
    method: "POST",
    path: `${path}/:id/rotate`,
    audited: true,
    scope: "api_keys:write",
    tag: "API keys",
    operationId: "rotateApiKey",
    summary: "Create an API key in the place of another one, which ends after some hours",
    params: v.object({ id: RecordIdInPath }),
    body: KeyRotation,
    idempotent: { secretFields: ["token"] },
    responses: { 201: NewApiKey },
    errors: { 403: ["plan_required"], 409: ["key_ended"], 422: ["api_key_limit_reached", "idempotency_key_reused"] },
    async handle({ app, caller, params, body, commit }) {
      const now = app.clock.now();
      return commit(async (tx) => {
        const key = await requireUsableKey(tx, caller, params.id, now);
        grantable(caller, key.scopes);
        const { row, token } = await rotateKey(tx, key, { graceHours: body.grace_hours, now });
        return { ...toApiKey(row), token };
      });
    },
  }),
  route({
    method: "DELETE",
    path: `${path}/:id`,
    audited: true,
    scope: "api_keys:write",
    tag: "API keys",
    operationId: "revokeApiKey",
    summary: "Revoke an API key",
    params: v.object({ id: RecordIdInPath }),
    responses: { 204: null },
    async handle({ app, caller, params }) {
      const now = app.clock.now();
      await app.write(async (tx) => {
        const ownKey = and(eq(apiKeys.id, params.id), ownedBy(caller, apiKeys.tenantId));
        if (!(await tx.select({ id: apiKeys.id }).from(apiKeys).where(ownKey).get())) notFound("key");
        await tx
          .update(apiKeys)
          .set({ revokedAt: now, updatedAt: now })
          .where(and(ownKey, isNull(apiKeys.revokedAt)));
      });
    },
  }),
];

/** A key cannot grant scopes that it does not have: otherwise api_keys:write would imply every scope. */
function grantable(caller: Caller, scopes: string[]): string[] {
  if (caller.kind !== "key") return scopes;
  const lacking = scopes.filter((scope) => !caller.scopes.includes(scope));
  if (lacking.length === 0) return scopes;
  throw new HttpError(403, "forbidden_scope", "insufficient_scope", { required_scopes: lacking });
}

import { and, count, desc, eq, isNull, lt, sql } from "drizzle-orm";
import * as v from "valibot";
import { requireTenant } from "#features/tenants/queries.ts";
import { HttpError, newSigningKeyId, notFound } from "#lib/base";
import { ownedBy } from "#platform/http/caller.ts";
import { byId, page } from "#platform/http/paging.ts";
import { RecordIdInPath, TenantIdInQuery } from "#platform/http/parameters.ts";
import { route } from "#platform/http/route.ts";
import { Paging } from "#platform/http/schemas.ts";
import { requireFewerRows } from "#platform/limits/row-limit.ts";
import type { Db } from "#storage/db/open.ts";
import { signingKeys, type TenantRow } from "#storage/db/schema.ts";
import { activeSigningKeys } from "./active.ts";
import { createKeyPair, readPublicKey } from "./key-pair.ts";
import { NewSigningKey, SigningKey, SigningKeyWrite, toSigningKey } from "./schema.ts";

const path = "/api/v1/signing_keys";
const MAX_LIVE = 20;
/** With those that are revoked: a new one replaces the oldest of them. */
const MAX_KEPT = 1000;

export const signingKeyRoutes = [
  route({
    method: "GET",
    path,
    scope: ["api_keys:read", "api_keys:write"],
    tag: "Signing keys",
    operationId: "listSigningKeys",
    summary: "List signing keys (public keys only), newest first",
    query: v.object({ ...Paging, tenant_id: v.optional(TenantIdInQuery) }),
    responses: { 200: v.array(SigningKey) },
    handle(context) {
      const { app, caller, query } = context;
      const batches = byId(query.cursor, (before, limit) =>
        app.db
          .select()
          .from(signingKeys)
          .where(
            and(
              ownedBy(caller, signingKeys.tenantId),
              query.tenant_id === undefined ? undefined : eq(signingKeys.tenantId, query.tenant_id),
              before === undefined ? undefined : lt(signingKeys.id, before),
            ),
          )
          .orderBy(desc(signingKeys.id))
          .limit(limit + 1)
          .all(),
      );
      return page(context, { batches, toWire: toSigningKey });
    },
  }),
  route({
    method: "POST",
    path,
    audited: true,
    scope: "api_keys:write",
    tag: "Signing keys",
    operationId: "createSigningKey",
    summary: "Create a signing key, or register a public key; a generated private key is returned once",
    body: SigningKeyWrite,
    idempotent: { secretFields: ["private_key"] },
    responses: { 201: NewSigningKey },
    errors: {
      403: ["plan_required"],
      404: ["not_found"],
      422: ["signing_key_limit_reached", "idempotency_key_reused"],
    },
    async handle({ app, caller, body, commit }) {
      const publicKey = body.public_key === undefined ? null : readPublicKey(body.public_key, body.algorithm);
      // Checked before as well as in the transaction, because generating a pair takes long.
      await requireBelowLimit(app.db, await requireTenant(app.db, caller, body.tenant_id));
      const pair = publicKey ?? (await createKeyPair(app, body.algorithm ?? "RS256"));
      const created = await commit(async (tx) => {
        const now = app.clock.now();
        const tenant = await requireTenant(tx, caller, body.tenant_id);
        await requireBelowLimit(tx, tenant);
        await requireFewerRows(tx, {
          table: "signing_keys",
          where: sql`tenant_id = ${tenant.id}`,
          max: MAX_KEPT,
          ended: sql`revoked_at IS NOT NULL`,
          code: "signing_key_limit_reached",
          message: `A tenant has at most ${MAX_KEPT} signing keys.`,
        });
        const { algorithm, publicKey } = pair;
        const row = await tx
          .insert(signingKeys)
          .values({
            tenantId: tenant.id,
            keyId: newSigningKeyId(),
            name: body.name,
            algorithm,
            publicKey,
            createdAt: now,
            updatedAt: now,
          })
          .returning()
          .get();
        return { ...toSigningKey(row), ...("privateKey" in pair && { private_key: pair.privateKey }) };
      });
      if ("tenant_id" in created) activeSigningKeys(app).forget(created.tenant_id);
      return created;
    },
  }),
  route({
    method: "DELETE",
    path: `${path}/:id`,
    audited: true,
    scope: "api_keys:write",
    tag: "Signing keys",
    operationId: "revokeSigningKey",
    summary: "Revoke a signing key and the tokens that it signed",
    params: v.object({ id: RecordIdInPath }),
    responses: { 204: null },
    async handle({ app, caller, params }) {
      const now = app.clock.now();
      const tenantId = await app.write(async (tx) => {
        const ownKey = and(eq(signingKeys.id, params.id), ownedBy(caller, signingKeys.tenantId));
        const row =
          (await tx.select({ tenantId: signingKeys.tenantId }).from(signingKeys).where(ownKey).get()) ??
          notFound("signing key");
        await tx
          .update(signingKeys)
          .set({ revokedAt: now, updatedAt: now })
          .where(and(ownKey, isNull(signingKeys.revokedAt)));
        return row.tenantId;
      });
      activeSigningKeys(app).forget(tenantId);
    },
  }),
];

/** Throws 403 on the free plan; 422 `signing_key_limit_reached` at twenty active keys. */
async function requireBelowLimit(db: Db, tenant: TenantRow): Promise<void> {
  if (tenant.planName === "free")
    throw new HttpError(403, "plan_required", "The free plan has no signing keys; choose a paid plan first.");
  const live = and(eq(signingKeys.tenantId, tenant.id), isNull(signingKeys.revokedAt));
  const active = await db.select({ keys: count() }).from(signingKeys).where(live).get();
  if ((active?.keys ?? 0) >= MAX_LIVE)
    throw new HttpError(
      422,
      "signing_key_limit_reached",
      `A tenant has at most ${MAX_LIVE} signing keys; revoke one that is no longer used.`,
    );
}

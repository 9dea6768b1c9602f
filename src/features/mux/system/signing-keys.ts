import { and, desc, eq, isNull, lt } from "drizzle-orm";
import { notFound } from "#lib/base";
import { byId } from "#platform/http/paging.ts";
import { type SigningKeyRow, signingKeys } from "#storage/db/schema.ts";
import { seconds } from "../assets/record.ts";
import { type Endpoint, endpoint, type MuxCall } from "../endpoint.ts";
import { fields, Paging } from "../fields.ts";
import { muxPage } from "../paging.ts";

const path = "/system/v1/signing-keys";
const READS = { scopes: ["api_keys:read", "api_keys:write"] } as const;
const WRITES = { scopes: ["api_keys:write"] } as const;
const { cursor: _, ...paging } = Paging;
const KeyList = fields(paging);

const toMuxKey = ({ keyId, createdAt }: Pick<SigningKeyRow, "keyId" | "createdAt">) => ({
  id: keyId,
  created_at: seconds(createdAt),
});

/** A key of the caller that is not revoked. Throws 404. */
async function requireKey({ app, caller, params }: MuxCall): Promise<SigningKeyRow> {
  const own = and(eq(signingKeys.tenantId, caller.tenantId), eq(signingKeys.keyId, params.id ?? ""));
  const row = await app.db
    .select()
    .from(signingKeys)
    .where(and(own, isNull(signingKeys.revokedAt)))
    .get();
  return row ?? notFound("signing key");
}

export const signingKeyEndpoints: readonly Endpoint[] = [
  endpoint({
    ...WRITES,
    method: "POST",
    path,
    operation: "createSigningKey",
    status: 201,
    async handle(call) {
      await call.body(fields({}));
      type Created = { key_id: string; created_at: string; private_key: string };
      const made = await call.native<Created>("POST", "/api/v1/signing_keys", {});
      return {
        ...toMuxKey({ keyId: made.key_id, createdAt: Date.parse(made.created_at) }),
        private_key: made.private_key,
      };
    },
  }),
  endpoint({
    ...READS,
    method: "GET",
    path,
    hasQuery: true,
    handle(call) {
      const { app, caller } = call;
      const query = call.query(KeyList);
      const { id, tenantId, revokedAt } = signingKeys;
      const batches = byId(undefined, (before, limit) =>
        app.db
          .select()
          .from(signingKeys)
          .where(
            and(eq(tenantId, caller.tenantId), isNull(revokedAt), before === undefined ? undefined : lt(id, before)),
          )
          .orderBy(desc(id))
          .limit(limit + 1)
          .all(),
      );
      return muxPage(call, query, { batches, toWire: toMuxKey });
    },
  }),
  endpoint({ ...READS, method: "GET", path: `${path}/:id`, handle: async (call) => toMuxKey(await requireKey(call)) }),
  endpoint({
    ...WRITES,
    method: "DELETE",
    path: `${path}/:id`,
    operation: "revokeSigningKey",
    status: 204,
    handle: async (call) => call.native("DELETE", `/api/v1/signing_keys/${(await requireKey(call)).id}`),
  }),
];

import * as v from "valibot";
import { listAudit } from "#platform/http/audit.ts";
import { decodeCursor, page } from "#platform/http/paging.ts";
import { route } from "#platform/http/route.ts";
import { ClientTime, Paging, QueryId, Text } from "#platform/http/schemas.ts";
import { AUDIT_ACTORS, type AuditRow } from "#storage/db/schema.ts";

const Nullable = v.nullable(v.string());
const Entry = v.object({
  id: v.number(),
  created_at: v.string(),
  actor: v.picklist(AUDIT_ACTORS),
  key_id: v.nullable(v.number()),
  actor_name: v.pipe(Nullable, v.description("As `actor` of an entry of the activity")),
  action: v.pipe(Nullable, v.description("The operation, such as `update_asset`")),
  user_id: v.pipe(v.nullable(v.number()), v.description("Id of the user who was signed in; null for other callers")),
  tenant_id: v.nullable(v.number()),
  address: v.string(),
  operator: Nullable,
  method: v.string(),
  route: v.string(),
  target_type: v.string(),
  target_id: Nullable,
  fields: v.array(v.string()),
  request_id: v.string(),
});

const toEntry = (row: AuditRow) => ({
  id: row.id,
  created_at: new Date(row.createdAt).toISOString(),
  actor: row.actor,
  key_id: row.keyId,
  actor_name: row.actorName,
  action: row.action,
  user_id: row.userId,
  tenant_id: row.tenantId,
  address: row.address,
  operator: row.operator,
  method: row.method,
  route: row.route,
  target_type: row.targetType,
  target_id: row.targetId,
  fields: row.fields,
  request_id: row.requestId,
});

/** Read-only: no route changes an entry. */
export const auditRoutes = [
  route({
    method: "GET",
    path: "/api/v1/admin/audit",
    credential: "admin",
    tag: "Operator",
    operationId: "listAuditEntries",
    summary: "List audit entries, newest first",
    query: v.object({
      ...Paging,
      tenant_id: v.optional(QueryId),
      since: v.optional(ClientTime),
      actor: v.optional(Text(300)),
      action: v.optional(Text(100)),
    }),
    responses: { 200: v.array(Entry) },
    handle(context) {
      const { app, query } = context;
      const filter = {
        tenantId: query.tenant_id,
        actor: query.actor,
        action: query.action,
        since: query.since === undefined ? undefined : Date.parse(query.since),
      };
      const batches = listAudit(app.db, filter, decodeCursor(query.cursor));
      const isSearch = [filter.actor, filter.action, filter.since].some((one) => one !== undefined);
      return page(context, { batches, toWire: toEntry, isSearch });
    },
  }),
];

import * as v from "valibot";
import { listAudit } from "#platform/http/audit.ts";
import { decodeCursor, page } from "#platform/http/paging.ts";
import { TenantIdInQuery } from "#platform/http/parameters.ts";
import { route } from "#platform/http/route.ts";
import { ClientTime, Paging, Text } from "#platform/http/schemas.ts";
import { describedAs } from "#protocol/fields.ts";
import {
  ActionField,
  CreatedAt,
  IpField,
  MethodField,
  RecordId,
  RequestId,
  RouteField,
  TargetId,
  TargetType,
  TenantIdField,
} from "#protocol/record-fields.ts";
import { AUDIT_ACTORS, type AuditRow } from "#storage/db/schema.ts";

const Nullable = v.nullable(v.string());
const ActorField = v.pipe(v.picklist(AUDIT_ACTORS), v.description("Kind of credential"));
const Entry = v.object({
  id: RecordId,
  created_at: describedAs(CreatedAt, v.string()),
  actor: ActorField,
  key_id: v.pipe(
    v.nullable(v.number()),
    v.description("Public id of the key; for the audit log, of the API key that was used"),
  ),
  actor_name: v.pipe(Nullable, v.description("As `actor` of an entry of the activity")),
  action: v.pipe(Nullable, v.description("The operation, such as `update_asset`")),
  user_id: v.pipe(v.nullable(v.number()), v.description("Id of the user who was signed in; null for other callers")),
  tenant_id: v.nullable(TenantIdField),
  address: IpField,
  operator: v.pipe(
    Nullable,
    v.description("Name of the user on the operator's machine, as the command line reports it"),
  ),
  method: MethodField,
  route: RouteField,
  target_type: TargetType,
  target_id: describedAs(TargetId, Nullable),
  fields: v.pipe(v.array(v.string()), v.description("Names of the fields in the request")),
  request_id: RequestId,
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
      tenant_id: v.optional(TenantIdInQuery),
      since: v.pipe(v.optional(ClientTime), v.description("Only entries from this time on")),
      actor: describedAs(ActorField, v.optional(Text(300))),
      action: v.optional(ActionField),
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

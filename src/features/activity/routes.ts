import * as v from "valibot";
import { iso } from "#lib/base";
import { listAudit } from "#platform/http/audit.ts";
import { decodeCursor, page } from "#platform/http/paging.ts";
import { route } from "#platform/http/route.ts";
import { Paging, QueryId, Text } from "#platform/http/schemas.ts";
import {
  CreatedAt,
  MethodField,
  RecordId,
  RequestId,
  RouteField,
  TargetId,
  TargetType,
} from "#protocol/record-fields.ts";
import type { AuditRow } from "#storage/db/schema.ts";
import { requireTenant } from "../tenants/queries.ts";

const Activity = v.pipe(
  v.object({
    id: RecordId,
    created_at: CreatedAt,
    actor: v.pipe(
      v.string(),
      v.description("A user's e-mail address at that time, `key:<id>`, `operator`, `system`, or `anyone`"),
    ),
    action: v.pipe(v.string(), v.description("The operation, such as `update_asset`")),
    method: MethodField,
    route: RouteField,
    target_type: TargetType,
    target_id: v.nullable(TargetId),
    fields: v.pipe(v.array(v.string()), v.description("Names of the fields in the request; never their values")),
    address: v.pipe(v.nullable(v.string()), v.description("Of the client; null for the operator")),
    request_id: RequestId,
  }),
  v.title("Activity"),
);

const toActivity = (row: AuditRow): v.InferInput<typeof Activity> => ({
  id: row.id,
  created_at: iso(row.createdAt),
  actor: row.actorName ?? row.actor,
  action: row.action ?? `${row.method} ${row.route}`,
  method: row.method,
  route: row.route,
  target_type: row.targetType,
  target_id: row.targetId,
  fields: row.fields,
  address: row.actor === "admin" ? null : row.address,
  request_id: row.requestId,
});

/** The tenant's part of the audit log. No route changes an entry. */
export const activityRoutes = [
  route({
    method: "GET",
    path: "/api/v1/activity",
    forAdmins: true,
    tag: "Tenants",
    operationId: "listActivity",
    summary: "List what was changed in the tenant, and by whom, newest first",
    query: v.object({
      ...Paging,
      tenant_id: v.optional(v.pipe(QueryId, v.description("Required with the admin token"))),
      before: v.optional(v.pipe(QueryId, v.description("Id of an entry: only older ones are listed"))),
      actor: v.optional(v.pipe(Text(300), v.description("A user's e-mail address, `key:<id>` or `operator`"))),
      action: v.optional(v.pipe(Text(100), v.description("The operation, such as `update_asset`"))),
    }),
    responses: { 200: v.array(Activity) },
    errors: { 403: ["forbidden_role"], 404: ["not_found"] },
    async handle(context) {
      const { app, caller, query } = context;
      const { id: tenantId } = await requireTenant(app.db, caller, query.tenant_id);
      const actor = query.actor?.trim();
      const filter = { tenantId, actor: actor?.includes("@") ? actor.toLowerCase() : actor, action: query.action };
      const batches = listAudit(app.db, filter, decodeCursor(query.cursor) ?? query.before);
      return page(context, { batches, toWire: toActivity, isSearch: (actor ?? query.action) !== undefined });
    },
  }),
];

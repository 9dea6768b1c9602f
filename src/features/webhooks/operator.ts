import * as v from "valibot";
import { HttpError } from "#lib/base";
import { decodeCursor, page } from "#platform/http/paging.ts";
import { route } from "#platform/http/route.ts";
import { type DeliveryFilter, isSearch, listDeliveries } from "./queries.ts";
import { replay } from "./resend.ts";
import { AllDeliveriesQuery, Delivery, Replayed, ReplayWrite, toDelivery } from "./schema.ts";

const path = "/api/v1/admin/webhooks";
const admin = { credential: "admin", tag: "Operator" } as const;

const filterOf = (
  query: v.InferOutput<typeof AllDeliveriesQuery> | v.InferOutput<typeof ReplayWrite>,
): DeliveryFilter => ({
  tenantId: query.tenant_id,
  endpointId: query.endpoint_id,
  status: query.status,
  event: query.event,
  since: query.since,
  until: query.until,
});

/** Deliveries of all tenants. */
export const webhookOperatorRoutes = [
  route({
    ...admin,
    method: "GET",
    path: `${path}/deliveries`,
    operationId: "listAllDeliveries",
    summary: "List the deliveries of all tenants, newest first",
    query: AllDeliveriesQuery,
    responses: { 200: v.array(Delivery) },
    handle(context) {
      const { app, caller, query } = context;
      const filter = filterOf(query);
      const batches = listDeliveries(app.db, caller, filter, decodeCursor(query.cursor));
      return page(context, { batches, toWire: toDelivery, isSearch: isSearch(filter) });
    },
  }),
  route({
    ...admin,
    method: "POST",
    path: `${path}/replay`,
    operationId: "replayDeliveries",
    summary: "Resend deliveries by id or by filter, one batch per call",
    body: ReplayWrite,
    responses: { 200: Replayed },
    async handle({ app, caller, body }) {
      const filter = filterOf(body);
      if (!body.ids && Object.values(filter).every((value) => value === undefined)) {
        throw new HttpError(422, "parameter_missing", "Set ids, or a filter such as status.", {
          details: { ids: ["set ids or a filter"] },
        });
      }
      const selection = { ids: body.ids, filter, dryRun: body.dry_run, after: body.after ?? 0 };
      if (selection.dryRun) return replay(app.db, app, caller, selection);
      return app.write(async (tx) => replay(tx, app, caller, selection));
    },
  }),
];

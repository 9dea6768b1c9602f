import * as v from "valibot";
import { decodeCursor, page, UNPAGED } from "../../http/paging.ts";
import { route } from "../../http/route.ts";
import { Paging, QueryId } from "../../http/schemas.ts";
import { iso } from "../../lib/clock.ts";
import { notFound } from "../../lib/errors.ts";
import { checkedUrl, createEndpoint, deleteEndpoint, rotateSecret, setActive } from "./change.ts";
import { getEndpoint, listDeliveries, listEndpoints } from "./queries.ts";
import { resend, sendTest } from "./resend.ts";
import {
  ActiveWrite,
  Delivery,
  DeliveryParams,
  DeliveryQuery,
  Endpoint,
  EndpointParams,
  EndpointWrite,
  NewEndpoint,
  RotatedEndpoint,
  toDelivery,
  toEndpoint,
} from "./schema.ts";

const path = "/api/v1/webhooks";
const tag = "Webhooks";
const one = { path: `${path}/:id`, tag, params: EndpointParams } as const;

export const webhookRoutes = [
  route({
    method: "GET",
    path,
    scope: "webhooks:read",
    tag,
    summary: "List webhook endpoints, newest first",
    query: v.object({ ...Paging, tenant_id: v.optional(QueryId) }),
    responses: { 200: v.array(Endpoint) },
    async handle({ app, caller, query, url }) {
      const limit = query.limit ?? UNPAGED;
      const after = decodeCursor(query.cursor);
      const rows = await listEndpoints(app.db, caller, { limit, after, tenantId: query.tenant_id });
      return page(rows, limit, url, app.baseUrl(), toEndpoint);
    },
  }),
  route({
    method: "POST",
    path,
    audited: true,
    scope: "webhooks:write",
    tag,
    summary: "Create a webhook endpoint; its signing secret is returned once",
    body: EndpointWrite,
    idempotent: { secretFields: ["secret"] },
    responses: { 201: NewEndpoint },
    errors: { 404: ["not_found"], 422: ["webhook_limit_reached", "idempotency_key_reused"] },
    async handle({ app, caller, body, commit }) {
      const url = await checkedUrl(app, body.url);
      return commit(async (tx) => {
        const { row, secret } = await createEndpoint(tx, app, caller, { ...body, url });
        return { ...toEndpoint(row), secret };
      });
    },
  }),
  route({
    ...one,
    method: "GET",
    scope: "webhooks:read",
    summary: "Get a webhook endpoint",
    responses: { 200: Endpoint },
    handle: async ({ app, caller, params }) =>
      toEndpoint((await getEndpoint(app.db, caller, params.id)) ?? notFound("webhook")),
  }),
  route({
    ...one,
    method: "DELETE",
    scope: "webhooks:write",
    summary: "Delete a webhook endpoint and its deliveries",
    responses: { 204: null },
    async handle({ app, caller, params }) {
      await app.write(async (tx) => deleteEndpoint(tx, app, caller, params.id));
      app.signals.emit("webhook.changed", params.id);
    },
  }),
  route({
    ...one,
    method: "PATCH",
    path: `${path}/:id/active`,
    audited: true,
    scope: "webhooks:write",
    summary: "Pause or resume a webhook endpoint",
    body: ActiveWrite,
    responses: { 200: Endpoint },
    async handle({ app, caller, params, body }) {
      const row = await app.write(async (tx) => setActive(tx, app, caller, params.id, body.active));
      app.signals.emit("webhook.changed", row.id);
      return toEndpoint(row);
    },
  }),
  route({
    ...one,
    method: "POST",
    path: `${path}/:id/rotate_secret`,
    audited: true,
    scope: "webhooks:write",
    summary: "Rotate the signing secret; the old one stays valid for 24 hours",
    responses: { 200: RotatedEndpoint },
    async handle({ app, caller, params }) {
      const { row, secret } = await app.write(async (tx) => rotateSecret(tx, app, caller, params.id));
      app.signals.emit("webhook.changed", row.id);
      return { ...toEndpoint(row), secret, previous_secret_expires_at: iso(row.previousSecretExpiresAt) };
    },
  }),
  route({
    ...one,
    method: "POST",
    path: `${path}/:id/test`,
    audited: true,
    scope: "webhooks:write",
    summary: "Send a test event",
    idempotent: {},
    responses: { 202: Delivery },
    errors: { 422: ["idempotency_key_reused"] },
    async handle({ app, caller, params, commit }) {
      const answer = await commit(async (tx) => toDelivery(await sendTest(tx, app, caller, params.id)));
      app.signals.emit("delivery.due");
      return answer;
    },
  }),
  route({
    ...one,
    method: "GET",
    path: `${path}/:id/deliveries`,
    scope: "webhooks:read",
    summary: "List the deliveries of an endpoint, newest first",
    query: DeliveryQuery,
    responses: { 200: v.array(Delivery) },
    async handle({ app, caller, params, query, url }) {
      const { id } = (await getEndpoint(app.db, caller, params.id)) ?? notFound("webhook");
      const limit = query.limit ?? UNPAGED;
      const filter = { endpointId: id, status: query.status, event: query.event };
      const rows = await listDeliveries(app.db, caller, filter, { limit, before: decodeCursor(query.cursor) });
      return page(rows, limit, url, app.baseUrl(), toDelivery);
    },
  }),
  route({
    method: "POST",
    path: `${path}/:id/deliveries/:delivery_id/resend`,
    audited: true,
    scope: "webhooks:write",
    tag,
    summary: "Resend a delivery with the same event id",
    params: DeliveryParams,
    responses: { 202: Delivery },
    async handle({ app, caller, params }) {
      const at = { endpointId: params.id, id: params.delivery_id };
      const row = await app.write(async (tx) => resend(tx, app, caller, at));
      app.signals.emit("delivery.due");
      return toDelivery(row);
    },
  }),
];

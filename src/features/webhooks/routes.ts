import * as v from "valibot";
import { iso, notFound } from "#lib/base";
import { byId, decodeCursor, decodeKey, encodeKey, page } from "#platform/http/paging.ts";
import { TenantIdInQuery } from "#platform/http/parameters.ts";
import { route } from "#platform/http/route.ts";
import { Paging } from "#platform/http/schemas.ts";
import { readAsset } from "../assets/queries.ts";
import { unsignedHeaders } from "./attempt.ts";
import { checkedUrl, createEndpoint, deleteEndpoint, rotateSecret, setActive, updateEndpoint } from "./change.ts";
import { bodyOf } from "./claims.ts";
import { muxBody } from "./mux-format.ts";
import {
  getDeliveredEvent,
  getDelivery,
  getEndpoint,
  isSearch,
  listAssetDeliveries,
  listDeliveries,
  listEndpoints,
} from "./queries.ts";
import { replay, resend, sendTest } from "./resend.ts";
import {
  ActiveWrite,
  AssetDeliveryKey,
  AssetDeliveryParams,
  AssetDeliveryQuery,
  Delivery,
  DeliveryDetails,
  DeliveryParams,
  DeliveryQuery,
  Endpoint,
  EndpointParams,
  EndpointPatch,
  EndpointWrite,
  NewEndpoint,
  ResendFailed,
  Resent,
  RotatedEndpoint,
  toDelivery,
  toEndpoint,
  WebhookEvent,
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
    operationId: "listWebhooks",
    summary: "List webhook endpoints, newest first",
    query: v.object({ ...Paging, tenant_id: v.optional(TenantIdInQuery) }),
    responses: { 200: v.array(Endpoint) },
    handle(context) {
      const { app, caller, query } = context;
      const batches = byId(query.cursor, (after, limit) =>
        listEndpoints(app, caller, { limit, after, tenantId: query.tenant_id }),
      );
      return page(context, { batches, toWire: toEndpoint });
    },
  }),
  route({
    method: "POST",
    path,
    audited: true,
    scope: "webhooks:write",
    tag,
    operationId: "createWebhook",
    summary: "Create a webhook endpoint; its signing secret is returned once",
    body: EndpointWrite,
    idempotent: { secretFields: ["secret"] },
    responses: { 201: NewEndpoint },
    sends: { name: "event", url: "{$request.body#/url}", summary: "Receive an event", body: WebhookEvent },
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
    operationId: "getWebhook",
    summary: "Get a webhook endpoint",
    responses: { 200: Endpoint },
    handle: async ({ app, caller, params }) =>
      toEndpoint((await getEndpoint(app.db, caller, params.id)) ?? notFound("webhook")),
  }),
  route({
    ...one,
    method: "PATCH",
    audited: true,
    scope: "webhooks:write",
    operationId: "updateWebhook",
    summary: "Change the URL, the description or the events of a webhook endpoint",
    body: EndpointPatch,
    responses: { 200: Endpoint },
    async handle({ app, caller, params, body }) {
      const url = body.url === undefined ? {} : { url: await checkedUrl(app, body.url) };
      const patch = { ...body, ...url };
      return toEndpoint(await app.write(async (tx) => updateEndpoint(tx, app, caller, params.id, patch)));
    },
  }),
  route({
    ...one,
    method: "DELETE",
    scope: "webhooks:write",
    operationId: "deleteWebhook",
    summary: "Delete a webhook endpoint and its deliveries",
    responses: { 204: null },
    async handle({ app, caller, params }) {
      await app.write(async (tx) => deleteEndpoint(tx, app, caller, params.id));
    },
  }),
  route({
    ...one,
    method: "PATCH",
    path: `${path}/:id/active`,
    audited: true,
    scope: "webhooks:write",
    operationId: "setWebhookActive",
    summary: "Pause or resume a webhook endpoint",
    body: ActiveWrite,
    responses: { 200: Endpoint },
    async handle({ app, caller, params, body }) {
      const row = await app.write(async (tx) => setActive(tx, app, caller, params.id, body.active));
      return toEndpoint(row);
    },
  }),
  route({
    ...one,
    method: "POST",
    path: `${path}/:id/rotate_secret`,
    audited: true,
    scope: "webhooks:write",
    operationId: "rotateWebhookSecret",
    summary: "Rotate the signing secret; the old one stays valid for 24 hours",
    responses: { 200: RotatedEndpoint },
    async handle({ app, caller, params }) {
      const { row, secret } = await app.write(async (tx) => rotateSecret(tx, app, caller, params.id));
      return { ...toEndpoint(row), secret, previous_secret_expires_at: iso(row.previousSecretExpiresAt) };
    },
  }),
  route({
    ...one,
    method: "POST",
    path: `${path}/:id/test`,
    audited: true,
    scope: "webhooks:write",
    operationId: "testWebhook",
    summary: "Send a test event",
    idempotent: {},
    responses: { 202: Delivery },
    errors: { 422: ["idempotency_key_reused"] },
    async handle({ app, caller, params, commit }) {
      return commit(async (tx) => toDelivery(await sendTest(tx, app, caller, params.id)));
    },
  }),
  route({
    ...one,
    method: "GET",
    path: `${path}/:id/deliveries`,
    scope: "webhooks:read",
    operationId: "listDeliveries",
    summary: "List the deliveries of an endpoint, newest first",
    query: DeliveryQuery,
    responses: { 200: v.array(Delivery) },
    async handle(context) {
      const { app, caller, params, query } = context;
      const { id } = (await getEndpoint(app.db, caller, params.id)) ?? notFound("webhook");
      const filter = { endpointId: id, status: query.status, event: query.event };
      const batches = listDeliveries(app.db, caller, filter, decodeCursor(query.cursor));
      return page(context, { batches, toWire: toDelivery, isSearch: isSearch(filter) });
    },
  }),
  route({
    method: "GET",
    path: "/api/v1/assets/:id/deliveries",
    scope: "webhooks:read",
    tag,
    operationId: "listAssetDeliveries",
    summary: "List the deliveries of an asset's events, newest event first",
    params: AssetDeliveryParams,
    query: AssetDeliveryQuery,
    responses: { 200: v.array(Delivery) },
    async handle(context) {
      const { app, caller, params, query } = context;
      const asset = (await readAsset(app, caller, params.id)) ?? notFound("asset");
      const batches = listAssetDeliveries(app.db, asset, {
        status: query.status,
        from: decodeKey(query.cursor, AssetDeliveryKey),
      });
      return page(context, {
        batches,
        toWire: toDelivery,
        cursorOf: (row) => encodeKey([row.eventId, row.id]),
        isSearch: true,
      });
    },
  }),
  route({
    method: "GET",
    path: `${path}/:id/deliveries/:delivery_id`,
    scope: "webhooks:read",
    tag,
    operationId: "getDelivery",
    summary: "Get a delivery with its request",
    params: DeliveryParams,
    responses: { 200: DeliveryDetails },
    async handle({ app, caller, params }) {
      const endpoint = (await getEndpoint(app.db, caller, params.id)) ?? notFound("webhook");
      const at = { endpointId: endpoint.id, id: params.delivery_id };
      const delivery = (await getDelivery(app.db, caller, at)) ?? notFound("delivery");
      const sent = (await getDeliveredEvent(app.db, delivery.id)) ?? notFound("delivery");
      const { event, eventName: eventId, tenantId } = delivery;
      const stored = { eventId, event, name: delivery.name, tenantId, createdAt: sent.createdAt, data: sent.data };
      return {
        ...toDelivery(delivery),
        request: {
          method: "POST",
          url: sent.url,
          headers: { ...unsignedHeaders(event), "webhook-id": eventId },
          body: endpoint.format === "mux" ? await muxBody(app, stored) : bodyOf(stored),
        },
      };
    },
  }),
  route({
    ...one,
    method: "POST",
    path: `${path}/:id/resend_failed`,
    audited: true,
    scope: "webhooks:write",
    operationId: "resendFailedDeliveries",
    summary: "Resend the failed deliveries of an endpoint, oldest first, up to 500 per call",
    body: ResendFailed,
    responses: { 202: Resent },
    async handle({ app, caller, params, body }) {
      const { id } = (await getEndpoint(app.db, caller, params.id)) ?? notFound("webhook");
      const filter = { endpointId: id, status: "failed" } as const;
      const selection = { ids: undefined, filter, dryRun: false, after: body.after ?? 0 };
      const { matched, replayed, paused, last } = await app.write(async (tx) => replay(tx, app, caller, selection));
      return { matched, resent: replayed, paused, last };
    },
  }),
  route({
    method: "POST",
    path: `${path}/:id/deliveries/:delivery_id/resend`,
    audited: true,
    scope: "webhooks:write",
    tag,
    operationId: "resendDelivery",
    summary: "Resend a delivery with the same event id",
    params: DeliveryParams,
    responses: { 202: Delivery },
    async handle({ app, caller, params }) {
      const at = { endpointId: params.id, id: params.delivery_id };
      const row = await app.write(async (tx) => resend(tx, app, caller, at));
      return toDelivery(row);
    },
  }),
];

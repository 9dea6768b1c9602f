import * as v from "valibot";
import { type Route, route } from "#platform/http/route.ts";
import { QueryId, Time } from "#platform/http/schemas.ts";
import { StartField, TenantIdField, TitleField } from "#protocol/record-fields.ts";
import { requireTenant } from "../tenants/queries.ts";
import { type FindChannelViewers, watchedNow } from "./now.ts";
import { ViewersField } from "./record-fields.ts";
import { viewsOf } from "./views.ts";

const Now = v.pipe(v.number(), v.description("Sessions that reported within the last 30 s"));
const Recent = v.pipe(v.number(), v.description("The same within the last five minutes"));

const WatchedNow = v.pipe(
  v.object({
    tenant_id: TenantIdField,
    at: v.pipe(Time, v.description("When it was counted")),
    viewers: Now,
    viewers_5m: Recent,
    timeseries: v.pipe(
      v.array(v.object({ start: StartField, viewers: ViewersField })),
      v.description("Sessions that were seen in each minute of the last half hour; the last minute has only begun"),
    ),
    videos: v.pipe(
      v.array(
        v.object({
          asset_id: v.pipe(v.nullable(v.number()), v.description("Null for a live channel")),
          channel_id: v.pipe(v.nullable(v.number()), v.description("Null for an asset")),
          title: TitleField,
          viewers: Now,
          viewers_5m: Recent,
        }),
      ),
      v.description("Up to a hundred with the most viewers"),
    ),
  }),
  v.title("WatchedNow"),
);

/** `channelViewers`: of the channels that are live. */
export const nowRoutes = (channelViewers: FindChannelViewers): Route[] => [
  route({
    method: "GET",
    path: "/api/v1/analytics/now",
    tag: "Analytics",
    operationId: "getWatchedNow",
    summary: "Get the viewers at this moment, by video and live channel",
    query: v.object({ tenant_id: v.optional(v.pipe(QueryId, v.description("Required with the admin token"))) }),
    responses: { 200: WatchedNow },
    errors: { 404: ["not_found"] },
    async handle({ app, caller, query }) {
      const { id } = await requireTenant(app.db, caller, query.tenant_id);
      await viewsOf(app).flush();
      return { tenant_id: id, ...(await watchedNow(app, id, await channelViewers(app, id))) };
    },
  }),
];

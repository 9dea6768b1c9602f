import { and, desc, eq, lt } from "drizzle-orm";
import * as v from "valibot";
import { iso } from "#lib/base";
import { byId, page } from "#platform/http/paging.ts";
import { RecordIdInPath } from "#platform/http/parameters.ts";
import { type Route, route } from "#platform/http/route.ts";
import { NullableTime, Paging } from "#platform/http/schemas.ts";
import { RecordId, StartedAt } from "#protocol/record-fields.ts";
import { liveStreams } from "#storage/db/schema.ts";
import { endStream, requireChannel } from "./queries.ts";
import { LiveChannel } from "./schema.ts";
import { toLiveChannel } from "./show.ts";
import { liveStreams as runningStreams } from "./streams/live-streams.ts";

const LiveStream = v.pipe(
  v.object({
    id: RecordId,
    started_at: StartedAt,
    ended_at: v.pipe(NullableTime, v.description("Null while it runs")),
    asset_id: v.pipe(
      v.nullable(v.number()),
      v.description("The recording, also of one that was deleted; null without one, and while it runs or is completed"),
    ),
  }),
  v.title("LiveStream"),
);

export const liveStreamRoutes: Route[] = [
  route({
    method: "POST",
    path: "/api/v1/live/channels/:id/end",
    scope: "assets:write",
    tag: "Live",
    operationId: "endLiveStream",
    summary: "End the running stream of a channel, within two seconds; an encoder that reconnects begins another one",
    params: v.object({ id: RecordIdInPath }),
    responses: { 202: LiveChannel },
    errors: { 409: ["channel_revoked"], 422: ["channel_idle"] },
    async handle({ app, caller, params }) {
      const row = await endStream(app, caller, params.id);
      runningStreams(app).channelsChanged();
      return toLiveChannel(app, row);
    },
  }),
  route({
    method: "GET",
    path: "/api/v1/live/channels/:id/streams",
    scope: ["assets:read", "assets:write"],
    tag: "Live",
    operationId: "listLiveStreams",
    summary: "List the streams of a channel with their recordings, newest first",
    params: v.object({ id: RecordIdInPath }),
    query: v.object(Paging),
    responses: { 200: v.array(LiveStream) },
    async handle(context) {
      const { app, caller, params, query } = context;
      const { id: channelId } = await requireChannel(app.db, caller, params.id);
      const batches = byId(query.cursor, (before, limit) =>
        app.db
          .select()
          .from(liveStreams)
          .where(
            and(eq(liveStreams.channelId, channelId), before === undefined ? undefined : lt(liveStreams.id, before)),
          )
          .orderBy(desc(liveStreams.id))
          .limit(limit + 1)
          .all(),
      );
      return page(context, {
        batches,
        toWire: ({ id, startedAt, endedAt, assetId }) => ({
          id,
          started_at: iso(startedAt),
          ended_at: iso(endedAt),
          asset_id: assetId,
        }),
      });
    },
  }),
];

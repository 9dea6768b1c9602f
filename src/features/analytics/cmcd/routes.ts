import type { PlaybackTokens } from "#features/playback/token.ts";
import { HttpError } from "#lib/base";
import { readBytes } from "#platform/http/body.ts";
import { Reply, type Route, route } from "#platform/http/route.ts";
import { acceptEvents, type FindChannel, takeEvents } from "../accept-events.ts";
import { MAX_BEACON_BYTES, MAX_EVENTS } from "../beacon.ts";
import { originOf } from "../origin.ts";
import { viewsOf } from "../views.ts";
import { cmcdEvents } from "./events.ts";
import { cmcdName } from "./sessions.ts";

/** The second is what `sendBeacon` may send from a page of another origin. */
const TYPES = /^(application\/cmcd|text\/(cmcd|plain))\b/i;

/** Reports of players in the event mode of CMCD version 2. */
export const cmcdRoutes = (tokens: PlaybackTokens, findChannel: FindChannel): Route[] => [
  route({
    method: "POST",
    path: "/api/v1/cmcd",
    credential: "none",
    limit: "beacon",
    cors: { allowHeaders: "content-type", exposeHeaders: "ratelimit, ratelimit-policy, retry-after" },
    tag: "Analytics",
    operationId: "recordCmcdReports",
    summary: "Record reports of a player in the event mode of CMCD version 2: up to 64, each in a line",
    raw: true,
    responses: { 204: null },
    errors: { 413: ["payload_too_large"], 415: ["unsupported_media_type"] },
    async handle(context) {
      const { app, headers, url } = context;
      if (!TYPES.test(headers.get("content-type") ?? ""))
        throw new HttpError(415, "unsupported_media_type", "Send reports as application/cmcd.");
      const body = Buffer.from(await readBytes(context, MAX_BEACON_BYTES)).toString("utf8");
      const take = async () => {
        const reported = cmcdEvents(app).read(body, url.searchParams.get("token"));
        const sids = new Map(reported.map(({ sid, event }) => [event, sid]));
        const accepted = await acceptEvents(app, { tokens: tokens.of(headers), findChannel }, [...sids.keys()]);
        // A session that is known by beacons, or by its requests for media, is not counted again.
        const asked = accepted.map(({ subject, event }) => {
          const sid = sids.get(event) as string;
          return { subject, names: [sid, cmcdName(sid)] };
        });
        const areKnown = await viewsOf(app).areKnown(asked);
        viewsOf(app).add(
          accepted.filter((_, index) => !areKnown[index]),
          originOf(app, context),
        );
        // As for beacons, the response does not reveal whether the content exists.
        return new Reply(204, undefined);
      };
      return takeEvents(context, body.split("\n", MAX_EVENTS).length, take);
    },
  }),
];

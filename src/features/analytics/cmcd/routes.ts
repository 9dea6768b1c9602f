import type { PlaybackTokens } from "#features/playback/token.ts";
import { HttpError } from "#lib/base";
import { readBytes } from "#platform/http/body.ts";
import { Reply, type Route, route } from "#platform/http/route.ts";
import { type AcceptedEvent, acceptEvents, type FindChannel } from "../accept-events.ts";
import { MAX_BEACON_BYTES } from "../beacon.ts";
import { deviceOf } from "../device.ts";
import { viewsOf } from "../views.ts";
import { cmcdEvents } from "./events.ts";

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
      const events = cmcdEvents(app).read(body, url.searchParams.get("token"));
      const accepted = await acceptEvents(app, { tokens: tokens.of(headers), findChannel }, events);
      const isCounted = new Map<string, boolean>();
      const counted: AcceptedEvent[] = [];
      for (const one of accepted) {
        const sid = one.event.session_id.replace(/^cmcd /, "");
        const key = `${one.subject.id} ${sid}`;
        const isKnown = isCounted.get(key) ?? (await viewsOf(app).isKnown(one.subject, sid));
        isCounted.set(key, isKnown);
        if (!isKnown) counted.push(one);
      }
      viewsOf(app).add(counted, deviceOf(headers));
      // As for beacons, the response does not reveal whether the content exists.
      return new Reply(204, undefined);
    },
  }),
];

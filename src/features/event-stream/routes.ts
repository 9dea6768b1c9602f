import * as v from "valibot";
import { EVENT_TYPES } from "#platform/events/catalog.ts";
import { tooMany } from "#platform/http/limits.ts";
import { type Context, route } from "#platform/http/route.ts";
import { Text } from "#platform/http/schemas.ts";
import { RETRY_SECONDS, serverSentEvents } from "#platform/http/server-sent-events.ts";
import { eventHub, type Message, PROGRESS } from "./hub.ts";

/** Events of this time are sent again to a client that resumes. */
const RESUME_MS = 5 * 60_000;
/** Open streams of one tenant, and of the admin token. */
const MAX_STREAMS = 500;
/** The most streams of all callers together. */
const MAX_TOTAL = 2000;

const TYPES = new Set<string>([...EVENT_TYPES, PROGRESS]);
const Types = v.pipe(
  Text(2000),
  v.description("Comma-separated event types; default: all"),
  v.transform((list) => list.split(",").map((type) => type.trim())),
  v.check((types) => types.every((type) => TYPES.has(type)), `must be a list of ${[...TYPES].join(", ")}`),
);

/** The id of the last event that the client received; null for a new stream. */
function lastEventId(headers: Headers): number | null {
  const value = headers.get("last-event-id");
  return value !== null && /^\d{1,15}$/.test(value) ? Number(value) : null;
}

async function open(context: Context, types: ReadonlySet<string> | null): Promise<Response> {
  const { app, caller, headers, method } = context;
  const hub = eventHub(app);
  const tenantId = caller.kind === "key" ? caller.tenantId : null;
  if (method !== "HEAD") {
    if (hub.size >= MAX_TOTAL || hub.countOf(tenantId) >= MAX_STREAMS) throw tooMany(RETRY_SECONDS);
    await hub.start();
  }
  return serverSentEvents(context, (events) => {
    const send = ({ type, text }: Message) => {
      if (types === null || types.has(type)) events.send(text);
    };
    const after = lastEventId(headers);
    const resume = after === null ? null : { after, since: app.clock.now() - RESUME_MS };
    return hub.subscribe({ ...events, tenantId, send }, resume);
  });
}

export const eventStreamRoutes = [
  route({
    method: "GET",
    path: "/api/v1/events/stream",
    scope: ["assets:read", "webhooks:read"],
    tag: "Webhooks",
    operationId: "streamEvents",
    summary: "Receive events and the progress of jobs as server-sent events",
    query: v.object({ types: v.optional(Types) }),
    produces: ["text/event-stream"],
    responses: { 200: v.string() },
    errors: { 429: ["rate_limited"] },
    handle: (context) => open(context, context.query.types ? new Set(context.query.types) : null),
  }),
];

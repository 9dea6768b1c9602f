import { FastResponse } from "srvx";
import * as v from "valibot";
import type { App } from "#app.ts";
import { HttpError, notFound } from "#lib/base";
import type { WhipAnswer, WhipErrorStatus } from "#live/whip/messages.ts";
import { readBytes } from "#platform/http/body.ts";
import { MEDIA_CORS } from "#platform/http/cors.ts";
import { type Context, Reply, type Route, route } from "#platform/http/route.ts";
import { authorizePublish } from "../authorize.ts";
import { channelOf, pathOf } from "../schema.ts";
import { whipRequests } from "./requests.ts";

/** A browser's offer has 3 to 10 kB. */
const MAX_OFFER_BYTES = 64 * 1024;
const SDP = "application/sdp";
const FRAGMENT = "application/trickle-ice-sdpfrag";

const CODES: Record<WhipErrorStatus, string> = {
  400: "invalid_sdp",
  401: "unauthorized",
  403: "stream_limit_reached",
  404: "not_found",
  406: "not_acceptable",
  409: "channel_live",
  422: "validation_failed",
  429: "rate_limited",
  503: "busy",
};

const common = {
  // The stream key is the bearer token.
  credential: "none",
  cors: MEDIA_CORS,
  limit: "live",
  tag: "Live",
  hidden: true,
} as const;
const params = v.object({ channel: v.string() });
const sessionParams = v.object({ channel: v.string(), session: v.string() });

/** WHIP (RFC 9725): publishers negotiate WebRTC here. Their media are sent to the ingest process. */
export const whipRoutes: Route[] = [
  route({
    ...common,
    method: "POST",
    path: "/live/:channel/whip",
    summary: "Publish to a channel by WebRTC, with an SDP offer",
    params,
    raw: true,
    rawBody: { [SDP]: v.string() },
    responses: { 201: null },
    errors: {
      400: ["invalid_sdp"],
      401: ["unauthorized"],
      403: ["stream_limit_reached"],
      406: ["not_acceptable"],
      409: ["channel_live"],
      503: ["busy"],
    },
    async handle(context) {
      const { app, address, headers } = context;
      const { channel } = context.params;
      requireOn(app);
      const key = bearerOf(headers) ?? unauthorized();
      await requireKey(context, channel, key);
      requireType(headers, SDP);
      const offer = await readText(context);
      const encoder = headers.get("user-agent") ?? "";
      const answer = await whipRequests(app).pass({ action: "publish", channel, key, address, encoder, offer });
      if (!("session" in answer)) return failed(answer);
      const location = `${app.baseUrl()}/${pathOf(channel)}/whip/${answer.session}`;
      const replied = { "content-type": SDP, location, "cache-control": "no-store" };
      return new FastResponse(answer.answer, { status: 201, headers: replied });
    },
  }),
  route({
    ...common,
    method: "DELETE",
    path: "/live/:channel/whip/:session",
    summary: "End a stream that was published by WebRTC",
    params: sessionParams,
    responses: { 200: null },
    errors: { 401: ["unauthorized"], 404: ["not_found"] },
    async handle(context) {
      const { channel, session } = await requireSession(context);
      const answer = await whipRequests(context.app).pass({ action: "end", channel, session });
      return answer.status === 200 ? new Reply(200, undefined) : failed(answer);
    },
  }),
  route({
    ...common,
    method: "PATCH",
    path: "/live/:channel/whip/:session",
    summary: "Send ICE candidates of a publisher",
    params: sessionParams,
    raw: true,
    rawBody: { [FRAGMENT]: v.string() },
    responses: { 204: null },
    errors: { 401: ["unauthorized"], 404: ["not_found"], 422: ["validation_failed"] },
    async handle(context) {
      const { channel, session } = await requireSession(context);
      requireType(context.headers, FRAGMENT);
      const fragment = await readText(context);
      const answer = await whipRequests(context.app).pass({ action: "trickle", channel, session, fragment });
      return answer.status === 204 ? new Reply(204, undefined) : failed(answer);
    },
  }),
];

function failed(answer: WhipAnswer): never {
  if (!("message" in answer)) throw new HttpError(503, CODES[503], "The server cannot accept a stream at this time.");
  const { status, message } = answer;
  const headers: Record<string, string> = status === 429 || status === 503 ? { "retry-after": "60" } : {};
  throw new HttpError(status, CODES[status], message, { headers: status === 401 ? CHALLENGE : headers });
}

const CHALLENGE = { "www-authenticate": "Bearer" };

function unauthorized(): never {
  throw new HttpError(401, "unauthorized", "Send the stream key of the channel: Authorization: Bearer live_…", {
    headers: CHALLENGE,
  });
}

function requireOn({ config }: App): void {
  if (config.whip_port === undefined) notFound("route");
}

const bearerOf = (headers: Headers): string | null =>
  /^bearer +(\S{1,512})$/i.exec(headers.get("authorization") ?? "")?.[1] ?? null;

/** Throws 401 for a wrong key as for an unknown channel, and 429 after too many of them. */
async function requireKey({ app, address }: Context, name: string, key: string): Promise<void> {
  const channel = channelOf(pathOf(name));
  if (channel === null) unauthorized();
  try {
    const query = new URLSearchParams({ key }).toString();
    await authorizePublish(app, channel as string, { query, ip: address }, address);
  } catch (error) {
    if (error instanceof HttpError && error.code === "channel_refused") unauthorized();
    throw error;
  }
}

/** The URL of a session cannot be guessed, so it suffices; a key that is sent with it must be right (RFC 9725, 4.5). */
async function requireSession(context: Context): Promise<{ channel: string; session: string }> {
  const { channel, session } = context.params as { channel: string; session: string };
  requireOn(context.app);
  if (!context.headers.has("authorization")) return { channel, session };
  await requireKey(context, channel, bearerOf(context.headers) ?? unauthorized());
  return { channel, session };
}

function requireType(headers: Headers, type: string): void {
  const [sent = ""] = (headers.get("content-type") ?? "").split(";");
  if (sent.trim().toLowerCase() !== type)
    throw new HttpError(415, "unsupported_media_type", `Send the body with Content-Type: ${type}.`);
}

async function readText({ request, incoming }: Context): Promise<string> {
  return Buffer.from(await readBytes({ request, incoming }, MAX_OFFER_BYTES)).toString("utf8");
}

import { Readable } from "node:stream";
import { FastResponse } from "srvx";
import * as v from "valibot";
import type { App } from "#app.ts";
import { leaseTokenOf, STALE } from "#features/transcoding/lease.ts";
import { bodyOf } from "#features/uploads/body.ts";
import { HttpError } from "#lib/base";
import { Reply, type Route, route } from "#platform/http/route.ts";
import { describedAs } from "#protocol/fields.ts";
import { LiveClaim, LiveContract } from "#protocol/live-encode.ts";
import { RecordId } from "#protocol/record-fields.ts";
import { forwarded } from "./leader.ts";
import { liveEncodes } from "./live-encodes.ts";

const base = "/api/v1/worker/live";
const params = v.object({ id: describedAs(RecordId, v.pipe(v.string(), v.regex(/^\w{1,100}$/))) });
const common = { credential: "worker", tag: "Transcoding jobs" } as const;
const MEDIA_TYPE = "video/mp4";

/** Routes of workers that encode the renditions of a stream while it runs. */
export const renditionRoutes: Route[] = [
  route({
    ...common,
    method: "POST",
    path: `${base}/next`,
    operationId: "claimLiveEncode",
    summary: "Lease the renditions of a running live stream",
    body: LiveClaim,
    responses: { 200: LiveContract, 204: null },
    async handle(context) {
      const { app, body, incoming } = context;
      const elsewhere = await forwarded(context, () => JSON.stringify(body));
      if (elsewhere) return elsewhere;
      const leased = await liveEncodes(app).next({ seconds: body.wait_seconds ?? 0, socket: incoming?.socket });
      if (!leased) return new Reply(204, undefined);
      const url = `${app.baseUrl()}${base}/${leased.id}`;
      return {
        schema_version: 1,
        id: leased.id,
        channel: leased.channel,
        renditions: leased.renditions.map(({ name, width, height, maxBitrate, buffer, crf }) => ({
          name,
          width,
          height,
          max_bitrate: maxBitrate,
          buffer,
          crf,
        })),
        lease_token: leased.token,
        input_url: `${url}/input`,
        output_url: `${url}/output`,
      };
    },
  }),
  route({
    ...common,
    method: "GET",
    path: `${base}/:id/input`,
    lease: true,
    operationId: "readLiveEncode",
    summary: "Get the video of the publisher of a leased live stream while it runs",
    params,
    produces: [MEDIA_TYPE],
    responses: { 200: v.string() },
    errors: STALE,
    async handle(context) {
      const { app, params, headers, incoming, method } = context;
      const elsewhere = await forwarded(context);
      if (elsewhere) return elsewhere;
      const encode = leased(app, params.id, headers);
      const common = { "content-type": MEDIA_TYPE, "cache-control": "no-store" };
      if (method === "HEAD") return new FastResponse(null, { headers: common });
      const body = encode.input() ?? lost();
      incoming?.socket.once("close", () => body.destroy());
      // srvx pipes Node streams directly; its types allow only web bodies.
      return new FastResponse(body as unknown as ReadableStream, { headers: common });
    },
  }),
  route({
    ...common,
    method: "POST",
    path: `${base}/:id/output`,
    lease: true,
    operationId: "writeLiveEncode",
    summary: "Send the renditions of a leased live stream while they are encoded",
    params,
    raw: true,
    rawBody: { [MEDIA_TYPE]: v.string() },
    responses: { 204: null },
    errors: STALE,
    async handle(context) {
      const { app, params, headers } = context;
      const body = bodyOf(context);
      const elsewhere = await forwarded(context, () => Readable.toWeb(body) as ReadableStream);
      if (elsewhere) return elsewhere;
      const encode = leased(app, params.id, headers);
      const isComplete = await (encode.output(body, () => body.destroy()) ?? lost());
      if (!isComplete) lost();
      return new Reply(204, undefined);
    },
  }),
];

const leased = (app: App, id: string, headers: Headers) =>
  liveEncodes(app).ofLease(id, leaseTokenOf(headers)) ?? lost();

function lost(): never {
  throw new HttpError(409, "stale_lease", "This lease of a live stream is not valid any more; lease another one.");
}

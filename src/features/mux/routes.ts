import * as v from "valibot";
import type { App } from "#app.ts";
import { notFound } from "#lib/base";
import { ANY_HEADER, MEDIA_CORS } from "#platform/http/cors.ts";
import { type Context, type Method, type Route, route } from "#platform/http/route.ts";
import { bindMuxBody } from "../webhooks/mux-format.ts";
import { assetEndpoints } from "./assets/endpoints.ts";
import { deliveryUsageEndpoints } from "./data/delivery-usage.ts";
import { metricEndpoints } from "./data/metrics.ts";
import { deliver, HOSTS, type MuxHost, type Playing } from "./delivery.ts";
import { answer, type Endpoint } from "./endpoint.ts";
import { muxError } from "./errors.ts";
import { liveEndpoints } from "./live/endpoints.ts";
import { playbackRestrictionEndpoints } from "./system/playback-restrictions.ts";
import { signingKeyEndpoints } from "./system/signing-keys.ts";
import { uploadEndpoints } from "./uploads/endpoints.ts";
import { receiveUpload } from "./uploads/receive.ts";
import { muxWebhookBody } from "./webhook-body.ts";

const METHODS: readonly Method[] = ["GET", "POST", "PUT", "PATCH", "DELETE"];
const UPLOAD_CORS = { allowHeaders: ANY_HEADER, exposeHeaders: "ETag, Range" };
const open = { credential: "none", hidden: true, tag: "Mux", responses: { 200: null }, showError: muxError } as const;

/**
 * `/mux`: Mux's API, for clients that were written for it. Its requests and errors have Mux's form, so the rows of its
 * table are not rows of ours. It keeps only what Mux's objects have and ours do not.
 */
export function muxRoutes(app: App, playing: Playing): Route[] {
  bindMuxBody(app, muxWebhookBody);
  const endpoints: readonly Endpoint[] = [
    ...assetEndpoints,
    ...uploadEndpoints,
    ...signingKeyEndpoints,
    ...metricEndpoints,
    ...deliveryUsageEndpoints,
    ...playbackRestrictionEndpoints,
    ...liveEndpoints,
  ];
  const delivery: Delivery = (context, of) => deliver(context, playing, of);
  return [
    ...["/mux", "/mux/**:path"].flatMap((path) =>
      METHODS.map((method) =>
        route({
          ...open,
          method,
          path,
          raw: method !== "GET",
          summary: "Call Mux's API",
          // The row of the endpoint authenticates.
          handle: (context) => answer(endpoints, context as Context, `/${pathOf(context as Context)}`),
        }),
      ),
    ),
    route({
      ...open,
      method: "PUT",
      path: "/mux/upload/:name/:secret",
      params: v.object({ name: v.string(), secret: v.string() }),
      credential: "signed",
      raw: true,
      cors: UPLOAD_CORS,
      summary: "Send the file of a direct upload",
      handle: (context) => receiveUpload(context as Context, context.params),
    }),
    ...HOSTS.map((host) =>
      route({
        ...open,
        method: "GET",
        path: `/mux/${host}/**:path`,
        cors: MEDIA_CORS,
        summary: `Get what Mux has at ${host}.mux.com`,
        handle(context) {
          const path = pathOf(context as Context);
          // Strapi's plugin serves storyboards at URLs of its own.
          const root = host === "image" ? `${app.baseUrl().replace(/\/$/, "")}/` : `../../${upFrom(path)}`;
          return delivery(context as Context, { host, path, root });
        },
      }),
    ),
    ...(app.config.mux_domain === undefined ? [] : hostRoutes(app.config.mux_domain, delivery)),
  ];
}

type Delivery = (context: Context, of: { host: MuxHost; path: string; root: string }) => Promise<unknown>;

/** From the directory of a path to the one that it is relative to. */
const upFrom = (path: string) => "../".repeat([...path].filter((character) => character === "/").length);

/** The same at the root of the hosts of a domain, which deliver the media too. Paths of other routes come first. */
const hostRoutes = (domain: string, delivery: Delivery): Route[] =>
  ["/:name", "/:name/**:rest"].map((path) =>
    route({
      ...open,
      method: "GET",
      path,
      cors: MEDIA_CORS,
      summary: "Get what Mux has at the root of a host",
      handle(context) {
        const host = HOSTS.find((one) => context.url.hostname === `${one}.${domain}`) ?? notFound("page");
        const { name = "", rest } = context.params as { name?: string; rest?: string };
        const path = rest === undefined ? name : `${name}/${rest}`;
        // A base URL with http may be that of a server behind a proxy with TLS: then only the client knows the scheme.
        const { protocol, pathname } = new URL(context.app.baseUrl());
        const root =
          protocol === "https:" ? `https://${context.url.host}${pathname.replace(/\/?$/, "/")}` : upFrom(path);
        return delivery(context as Context, { host, path, root });
      },
    }),
  );

const pathOf = ({ params }: Context) => (params as { path?: string }).path ?? "";

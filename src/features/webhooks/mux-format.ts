import { type App, forApp } from "#app.ts";
import type { EventOfDelivery } from "./claims.ts";

type MuxBody = (app: App, event: EventOfDelivery) => Promise<string>;

const bound = forApp((): { body: MuxBody | null } => ({ body: null }));

/** Once, by the resource that knows Mux's objects. */
export function bindMuxBody(app: App, body: MuxBody): void {
  bound(app).body = body;
}

/** The body of a delivery in Mux's form. */
export function muxBody(app: App, event: EventOfDelivery): Promise<string> {
  const { body } = bound(app);
  if (!body) throw new Error("The server does not run yet.");
  return body(app, event);
}

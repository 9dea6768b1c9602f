import { type App, forApp } from "#app.ts";
import type { HttpClient } from "#lib/network";

const clients = forApp((app) => ({
  // Loaded on first use, because it would slow down the start.
  client: import("#lib/network").then(({ createSafeHttpClient }) =>
    createSafeHttpClient({ allowCidrs: app.config.webhook_allow_cidrs }),
  ),
}));

/** The client for all requests to URLs of tenants. */
export const httpClientOf = (app: App): Promise<HttpClient> => clients(app).client;

import { type App, forApp } from "../app.ts";
import type { HttpClient } from "./http-client.ts";

const doors = forApp((app) => ({
  // Most servers send nothing for a long while after their start, which need not wait for this.
  door: import("./safe-http-client.ts").then(({ createSafeHttpClient: createDoor }) =>
    createDoor({ allowCidrs: app.config.webhook_allow_cidrs }),
  ),
}));

/** What everything that a running program sends to addresses of its tenants goes through. */
export const httpClientOf = (app: App): Promise<HttpClient> => doors(app).door;

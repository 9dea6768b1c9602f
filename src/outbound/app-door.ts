import { type App, forApp } from "../app.ts";
import type { Door } from "./outcome.ts";

const doors = forApp((app) => ({
  // Most servers send nothing for a long while after their start, which need not wait for this.
  door: import("./door.ts").then(({ createDoor }) => createDoor({ allowCidrs: app.config.webhook_allow_cidrs })),
}));

/** What everything that a running program sends to addresses of its tenants goes through. */
export const doorOf = (app: App): Promise<Door> => doors(app).door;

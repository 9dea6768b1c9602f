import { forApp } from "../app.ts";
import { createDoor } from "./door.ts";

/** What everything that a running program sends to addresses of its tenants goes through. */
export const doorOf = forApp((app) => createDoor({ allowCidrs: app.config.webhook_allow_cidrs }));

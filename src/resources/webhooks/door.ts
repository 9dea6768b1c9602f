import { forApp } from "../../app.ts";
import { createDoor } from "../../outbound/door.ts";

/** What all deliveries of a running program go through. */
export const doorOf = forApp((app) => createDoor({ allowCidrs: app.config.webhook_allow_cidrs }));

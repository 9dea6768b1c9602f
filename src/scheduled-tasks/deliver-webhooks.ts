import type { App } from "../app.ts";
import { deliverDue } from "../resources/webhooks/dispatcher.ts";
import type { ScheduledTask } from "./scheduler.ts";

/** Woken by commits that leave something due; looks by itself for retries, and for what another process left. */
export const deliverWebhooks = (app: App): ScheduledTask => ({
  name: "deliver-webhooks",
  schedule: "* * * * * *",
  wakes: (wake) => app.signals.on("delivery.due", wake),
  run: () => deliverDue(app),
});

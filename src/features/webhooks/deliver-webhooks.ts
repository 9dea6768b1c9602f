import type { App } from "#app.ts";
import type { ScheduledTask } from "#platform/scheduled-tasks/scheduler.ts";
import { deliverDue } from "./dispatcher.ts";

/** Woken by commits with due deliveries; also polls for retries, and for deliveries of another process. */
export const deliverWebhooks = (app: App): ScheduledTask => ({
  name: "deliver-webhooks",
  schedule: "* * * * * *",
  wakes: (wake) => app.signals.on("delivery.due", wake),
  run: () => deliverDue(app),
});

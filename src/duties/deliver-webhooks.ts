import type { App } from "../app.ts";
import { deliverDue } from "../resources/webhooks/dispatcher.ts";
import type { Duty } from "./duty.ts";

/** Woken by commits that leave something due; looks by itself for retries, and for what another process left. */
export const deliverWebhooks = (app: App): Duty => ({
  name: "deliver-webhooks",
  every: "* * * * * *",
  wakes: (wake) => app.signals.on("delivery.due", wake),
  run: () => deliverDue(app),
});

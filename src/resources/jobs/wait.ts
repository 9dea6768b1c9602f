import type { App } from "../../app.ts";
import { hasQueued } from "./claim.ts";

/** Resolves when there may be a job, when `seconds` have passed, or when the program stops. */
export async function waitForJob(app: App, seconds: number): Promise<void> {
  if (seconds <= 0 || app.stopping.aborted) return;
  const woken = Promise.withResolvers<void>();
  const timer = setTimeout(woken.resolve, seconds * 1000);
  app.signals.once("job.queued", woken.resolve);
  app.stopping.addEventListener("abort", () => woken.resolve(), { once: true });
  try {
    // Asked after listening, so that a job queued in between is not slept through.
    if (!(await hasQueued(app))) await woken.promise;
  } finally {
    clearTimeout(timer);
    app.signals.off("job.queued", woken.resolve);
  }
}

import type { Socket } from "node:net";
import { type App, forApp } from "../../app.ts";
import { hasQueued } from "./claim.ts";

/**
 * Requests that wait for a job, in order of arrival. One job wakes one of them: a thousand idle workers that all
 * claimed at once would occupy the write queue for a third of a second, and one of them would get the job.
 */
const waiting = forApp((app) => {
  const wakes = new Set<() => void>();
  app.signals.on("job.queued", () => {
    const [first] = wakes;
    if (first) first();
  });
  return wakes;
});

/** Resolves when there may be a job, when `seconds` have passed, when `socket` closes, or when the program stops. */
export async function waitForJob(app: App, seconds: number, socket: Socket | undefined): Promise<void> {
  if (seconds <= 0 || app.stopping.aborted) return;
  const wakes = waiting(app);
  const woken = Promise.withResolvers<void>();
  const wake = () => {
    wakes.delete(wake);
    woken.resolve();
  };
  const timer = setTimeout(wake, seconds * 1000);
  wakes.add(wake);
  app.stopping.addEventListener("abort", wake, { once: true });
  socket?.once("close", wake);
  try {
    // Checked after subscribing, so that a job queued in between is not missed.
    if (!(await hasQueued(app))) await woken.promise;
  } finally {
    clearTimeout(timer);
    wakes.delete(wake);
    app.stopping.removeEventListener("abort", wake);
    socket?.off("close", wake);
  }
}

/** Called by a request that was woken and got a job: there may be another one, for the next request. */
export const wakeNext = (app: App): void => void app.signals.emit("job.queued");

import type { Socket } from "node:net";
import { type App, forApp } from "../../app.ts";
import { hasQueued, type Takes } from "./claim.ts";
import { workerWaker } from "./wake.ts";

type Waiting = Takes & { wake(): void };
type WaitOptions = { seconds: number; socket: Socket | undefined; workerId: string | null };

/**
 * Requests that wait for a job, in order of arrival. One job wakes one of them: a thousand idle workers that all
 * claimed at once would occupy the write queue for a third of a second, and one of them would get the job. What is
 * queued may be a task or an exact clip, so a worker that takes all is woken too, and one request of each other lane.
 */
const waiting = forApp((app) => {
  const all = new Set<Waiting>();
  const firstOf = (isWanted: (each: Waiting) => boolean) => {
    for (const each of all) if (isWanted(each)) return each;
    return undefined;
  };
  app.signals.on("job.queued", () => {
    const first = firstOf(({ lane }) => lane === "main");
    const takesAll = ({ takesTasks, takesClips, takesJoins }: Waiting) => takesTasks && takesClips && takesJoins;
    const other = first && !takesAll(first) ? firstOf((each) => takesAll(each) && each.lane === "main") : undefined;
    const others = (["light", "urgent"] as const).map((lane) => firstOf((each) => each.lane === lane));
    for (const each of [first, other, ...others]) each?.wake();
  });
  return all;
});

/** Resolves when there may be a job, when `seconds` have passed, when `socket` closes, or when the program stops. */
export async function waitForJob(
  app: App,
  { seconds, socket, workerId, ...takes }: Takes & WaitOptions,
): Promise<void> {
  if (seconds <= 0 || app.stopping.aborted) return;
  const all = waiting(app);
  const woken = Promise.withResolvers<void>();
  const one: Waiting = {
    ...takes,
    wake: () => {
      all.delete(one);
      woken.resolve();
    },
  };
  const timer = setTimeout(one.wake, seconds * 1000);
  all.add(one);
  app.stopping.addEventListener("abort", one.wake, { once: true });
  socket?.once("close", one.wake);
  try {
    // Checked after subscribing, so that a job queued in between is not missed.
    if (!(await hasQueued(app, takes, workerId))) await woken.promise;
  } finally {
    clearTimeout(timer);
    all.delete(one);
    app.stopping.removeEventListener("abort", one.wake);
    socket?.off("close", one.wake);
  }
}

/** Called by a request that was woken and got a job: there may be another one, for the next request. */
export const wakeNext = (app: App): void => workerWaker(app)();

import type { Socket } from "node:net";
import { type App, forApp } from "#app.ts";
import { setTimeout } from "#lib/base";
import type { Lane } from "#protocol/worker.ts";
import { hasQueued, type Takes } from "./claim.ts";
import { takesAll } from "./requirements.ts";
import { workerWaker } from "./wake.ts";

/** `seen`: the number of the last event that woke the request, and for which it got nothing; 0 for none. */
type Waiting = Takes & { seen: number; wake(event: number): void };
type WaitOptions = { seconds: number; socket: Socket | undefined; workerId: string | null; seen: number };

/**
 * Requests that wait for a job, in order of arrival. One job wakes one of them: a thousand idle workers that all
 * claimed at once would occupy the write queue for a third of a second, and one of them would get the job. What is
 * queued may be a task or an exact clip, so a worker that takes all is woken too, and one request of each other lane.
 */
const waiting = forApp((app) => {
  const all = new Set<Waiting>();
  let events = 0;
  const firstOf = (isWanted: (each: Waiting) => boolean) => {
    for (const each of all) if (isWanted(each)) return each;
    return undefined;
  };
  app.signals.on("job.queued", () => {
    const first = firstOf(({ lane }) => lane === "main");
    const isAny = ({ capabilities }: Waiting) => takesAll(capabilities);
    const other = first && !isAny(first) ? firstOf((each) => isAny(each) && each.lane === "main") : undefined;
    events++;
    for (const each of [first, other]) each?.wake(events);
    for (const lane of ["light", "urgent", "captions"] as const) wakeLane(lane, events);
  });
  const wakeLane = (lane: Lane, event: number) =>
    firstOf((each) => each.lane === lane && each.seen < event)?.wake(event);
  return { all, wakeLane };
});

/**
 * Resolves when there may be a job, when `seconds` have passed, when `socket` closes, or when the program stops: with the
 * number of the event that woke the request, or with `seen`.
 */
export async function waitForJob(
  app: App,
  { seconds, socket, workerId, seen, ...takes }: Takes & WaitOptions,
): Promise<number> {
  if (seconds <= 0 || app.stopping.aborted) return seen;
  const { all } = waiting(app);
  const woken = Promise.withResolvers<number>();
  const one: Waiting = {
    ...takes,
    seen,
    wake: (event) => {
      all.delete(one);
      woken.resolve(event);
    },
  };
  const end = () => one.wake(seen);
  const timer = setTimeout(end, seconds * 1000);
  all.add(one);
  app.stopping.addEventListener("abort", end, { once: true });
  socket?.once("close", end);
  try {
    // Checked after subscribing, so that a job queued in between is not missed; one that wakes the request needs no check, which
    // a remote database may answer late.
    const checked = hasQueued(app, takes, workerId).then((isQueued) => (isQueued ? seen : woken.promise));
    return await Promise.race([woken.promise, checked]);
  } finally {
    clearTimeout(timer);
    all.delete(one);
    app.stopping.removeEventListener("abort", end);
    socket?.off("close", end);
  }
}

/** Called by a request that was woken and got a job: there may be another one, for the next request. */
export const wakeNext = (app: App): void => workerWaker(app)();

/** Called by a request that an event woke and that got nothing: the task may not be for its worker, but for another. */
export const passOn = (app: App, lane: Lane, event: number): void => {
  if (event > 0 && lane !== "main") waiting(app).wakeLane(lane, event);
};

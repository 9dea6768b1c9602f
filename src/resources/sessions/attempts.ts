import { type App, forApp } from "../../app.ts";
import { countWindows, tooMany } from "../../http/limits.ts";
import { HttpError } from "../../lib/errors.ts";
import { networkOf } from "../../lib/network.ts";

/** Attempts of one address that wait for earlier ones. */
const MAX_WAITING = 32;

type Queue = { last: Promise<unknown>; length: number };

const attempts = forApp(({ config, cache }) => ({
  failures: countWindows(config.rate_limit_session, { name: "session", redis: cache.redis }),
  queues: new Map<string, Queue>(),
}));

/**
 * Runs attempts to sign in from one address one after another, so that concurrent guesses cannot exceed the limit of
 * failures before they are counted. Throws 429 once it is reached, whatever the credential. An attempt that throws 401,
 * or 403 `wrong_password`, is a failure.
 */
export async function attempt<T>(app: App, address: string, work: () => Promise<T>): Promise<T> {
  const { failures, queues } = attempts(app);
  const network = networkOf(address);
  const queue = queues.get(network) ?? { last: Promise.resolve(), length: 0 };
  if (queue.length >= MAX_WAITING)
    throw new HttpError(503, "busy", "Too many concurrent sign-ins; try again shortly.", {
      headers: { "retry-after": "5" },
    });
  queues.set(network, queue);
  queue.length++;
  const run = queue.last.then(async () => {
    const { exceeded, waitSeconds } = await failures.hasAllowance(address);
    if (exceeded) throw tooMany(waitSeconds);
    try {
      return await work();
    } catch (error) {
      if (error instanceof HttpError && (error.status === 401 || error.code === "wrong_password"))
        await failures.countAddress(address);
      throw error;
    }
  });
  queue.last = run.catch(() => {});
  try {
    return await run;
  } finally {
    if (--queue.length === 0) queues.delete(network);
  }
}

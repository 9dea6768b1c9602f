import { type App, forApp } from "#app.ts";
import { HttpError } from "#lib/base";
import { networkOf } from "#lib/network";
import { countWindows, tooMany } from "#platform/http/limits.ts";
import { WrongCode } from "./second-factor.ts";

/** Attempts of one address that wait for earlier ones. */
const MAX_WAITING = 32;

type Limit = "session" | "totp";
type Queue = { last: Promise<unknown>; length: number };

const attemptsOf = (name: Limit) =>
  forApp(({ config, cache }) => ({
    failures: countWindows(config.rate_limit_session, { name, redis: cache.redis }),
    queues: new Map<string, Queue>(),
  }));
const attempts = { session: attemptsOf("session"), totp: attemptsOf("totp") };

const isRefused = (error: HttpError) =>
  (error.status === 401 && error.code !== "totp_required") || error.code === "wrong_password";

/**
 * Runs attempts to sign in from one address one after another, so that concurrent guesses cannot exceed the limit of
 * failures before they are counted. Throws 429 once it is reached, whatever the credential. An attempt that throws 401,
 * or 403 `wrong_password`, is a failure; 401 `totp_required` is none.
 */
export const attempt = <T>(app: App, address: string, work: () => Promise<T>): Promise<T> =>
  oneByOne(app, { limit: "session", key: networkOf(address), isFailure: isRefused }, work);

/** The same for codes of the second factor, by the user's e-mail address: a wrong password is no failure here. */
export const attemptCode = <T>(app: App, email: string, work: () => Promise<T>): Promise<T> =>
  oneByOne(app, { limit: "totp", key: `totp:${email}`, isFailure: (error) => error instanceof WrongCode }, work);

type Attempt = { limit: Limit; key: string; isFailure(error: HttpError): boolean };

async function oneByOne<T>(app: App, { limit, key, isFailure }: Attempt, work: () => Promise<T>): Promise<T> {
  const { failures, queues } = attempts[limit](app);
  const queue = queues.get(key) ?? { last: Promise.resolve(), length: 0 };
  if (queue.length >= MAX_WAITING)
    throw new HttpError(503, "busy", "Too many concurrent sign-ins; try again shortly.", {
      headers: { "retry-after": "5" },
    });
  queues.set(key, queue);
  queue.length++;
  const run = queue.last.then(async () => {
    const { exceeded, waitSeconds } = await failures.hasAllowance(key);
    if (exceeded) throw tooMany(waitSeconds);
    try {
      return await work();
    } catch (error) {
      if (error instanceof HttpError && isFailure(error)) await failures.countAddress(key);
      throw error;
    }
  });
  queue.last = run.catch(() => {});
  try {
    return await run;
  } finally {
    if (--queue.length === 0) queues.delete(key);
  }
}

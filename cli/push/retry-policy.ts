import { sleep, UserError } from "#lib/base";

const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 30_000;
/** How long to wait for a server that has responded before, since its last response: it may be restarting. */
const MAX_RETRY_MS = 300_000;
const TELL_EVERY_MS = 60_000;

/**
 * A temporary error: a broken connection, or (`answered`) a server that asks for a retry, after `afterMs` if it says
 * so.
 */
export class RetryableError extends Error {
  readonly answered: boolean;
  readonly afterMs: number | null;
  constructor(message: string, { answered = false, afterMs = null as number | null } = {}) {
    super(message);
    this.answered = answered;
    this.afterMs = afterMs;
  }
}

export type RetryPolicy = {
  /** Runs `work` until it succeeds; throws errors other than TryAgain, and a UserError when the time is up. */
  until<T>(work: () => Promise<T>): Promise<T>;
  /** Called on success. */
  progressed(): void;
  /** Resets the policy for another file: a server that was reachable is again waited for as long as at first. */
  afresh(): void;
};

/**
 * With `waitMs` it also waits that long for a server that has never responded; `tell` is called at once and then each
 * minute.
 */
export function retryPolicy(waitMs: number | null = null, report: (sentence: string) => void = () => {}): RetryPolicy {
  const startedAt = Date.now();
  const longestMs = Math.max(MAX_RETRY_MS, waitMs ?? 0);
  // A server that never responded is more likely a wrong URL, unless waiting was requested.
  let lastAnswerAt: number | null = null;
  let reportedAt = Number.NEGATIVE_INFINITY;
  const progressed = () => {
    lastAnswerAt = Date.now();
  };
  const deadline = () => {
    if (lastAnswerAt !== null) return lastAnswerAt + longestMs;
    return waitMs === null ? Number.NEGATIVE_INFINITY : startedAt + waitMs;
  };
  const reportWait = (message: string) => {
    const now = Date.now();
    if (waitMs === null || now - reportedAt < TELL_EVERY_MS) return;
    reportedAt = now;
    const until = new Date(deadline()).toISOString().slice(0, 19);
    // Only its first sentence: the rest is advice for users who do not wait.
    const [reason = message] = message.split(/\.(?:\s|$)/);
    report(`${reason}; retrying until ${until}Z.`);
  };
  return {
    progressed,
    afresh() {
      if (lastAnswerAt !== null) progressed();
    },
    async until(work) {
      for (let failures = 0; ; failures++) {
        try {
          const result = await work();
          progressed();
          return result;
        } catch (error) {
          if (!(error instanceof RetryableError)) throw error;
          if (error.afterMs !== null || (error.answered && lastAnswerAt === null)) progressed();
          const leftMs = deadline() - Date.now();
          if (leftMs < 0) throw new UserError(error.message);
          reportWait(error.message);
          const wait = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** failures);
          // With jitter, so that many clients of one server do not retry at once; and one last attempt when the time is
          // up.
          await sleep(error.afterMs ?? Math.min(wait * (0.5 + Math.random() / 2), leftMs + 1));
        }
      }
    },
  };
}

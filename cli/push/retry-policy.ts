import { setTimeout as sleep } from "node:timers/promises";
import { UserError } from "../../src/lib/errors.ts";

const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 30_000;
/** A server that has answered once is waited for so long, counted from its last answer: it may be restarted. */
const MAX_RETRY_MS = 300_000;
const TELL_EVERY_MS = 60_000;

/** Passing: a broken connection, or (`answered`) a server that asks for another try, after `afterMs` if it says so. */
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
  /** Runs `work` until it succeeds; throws what is no TryAgain, and a UserError when patience is over. */
  until<T>(work: () => Promise<T>): Promise<T>;
  /** Something went well. */
  progressed(): void;
  /** Another file's turn, however long ago the last one was: a server that was well then is waited for as long as ever. */
  afresh(): void;
};

/**
 * With `waitMs` a server that has not answered at all is waited for, too, for so long; `tell` hears of that at once and
 * then each minute.
 */
export function retryPolicy(waitMs: number | null = null, tell: (sentence: string) => void = () => {}): RetryPolicy {
  const startedAt = Date.now();
  const longestMs = Math.max(MAX_RETRY_MS, waitMs ?? 0);
  // A server that never answered is rather a wrong address, unless somebody said to wait for it.
  let lastAnswerAt: number | null = null;
  let toldAt = Number.NEGATIVE_INFINITY;
  const progressed = () => {
    lastAnswerAt = Date.now();
  };
  const deadline = () => {
    if (lastAnswerAt !== null) return lastAnswerAt + longestMs;
    return waitMs === null ? Number.NEGATIVE_INFINITY : startedAt + waitMs;
  };
  const sayThatWeWait = (message: string) => {
    const now = Date.now();
    if (waitMs === null || now - toldAt < TELL_EVERY_MS) return;
    toldAt = now;
    const until = new Date(deadline()).toISOString().slice(0, 19);
    // Its first sentence: the rest advises whoever does not wait.
    const [what = message] = message.split(/\.(?:\s|$)/);
    tell(`${what}; waiting for it until ${until}Z.`);
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
          sayThatWeWait(error.message);
          const wait = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** failures);
          // Spread, so that many clients of one server do not come back at once; and once more when time is up.
          await sleep(error.afterMs ?? Math.min(wait * (0.5 + Math.random() / 2), leftMs + 1));
        }
      }
    },
  };
}

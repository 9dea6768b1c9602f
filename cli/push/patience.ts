import { setTimeout as sleep } from "node:timers/promises";
import { UserError } from "../../src/lib/errors.ts";

const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 30_000;
/** A server that has answered once is waited for so long, counted from its last answer: it may be restarted. */
const PATIENCE_MS = 300_000;

/** Passing: a broken connection, or (`answered`) a server that asks for another try, after `afterMs` if it says so. */
export class TryAgain extends Error {
  readonly answered: boolean;
  readonly afterMs: number | null;
  constructor(message: string, { answered = false, afterMs = null as number | null } = {}) {
    super(message);
    this.answered = answered;
    this.afterMs = afterMs;
  }
}

export type Patience = {
  /** Runs `work` until it succeeds; throws what is no TryAgain, and a UserError when patience is over. */
  until<T>(work: () => Promise<T>): Promise<T>;
  /** Something went well. */
  progressed(): void;
};

export function patience(): Patience {
  // A server that never answered is rather a wrong address.
  let lastAnswerAt: number | null = null;
  const progressed = () => {
    lastAnswerAt = Date.now();
  };
  return {
    progressed,
    async until(work) {
      for (let failures = 0; ; failures++) {
        try {
          const result = await work();
          progressed();
          return result;
        } catch (error) {
          if (!(error instanceof TryAgain)) throw error;
          if (error.afterMs !== null || (error.answered && lastAnswerAt === null)) progressed();
          if (lastAnswerAt === null || Date.now() - lastAnswerAt > PATIENCE_MS) throw new UserError(error.message);
          const wait = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** failures);
          // Spread, so that many clients of one server do not come back at once.
          await sleep(error.afterMs ?? wait * (0.5 + Math.random() / 2));
        }
      }
    },
  };
}

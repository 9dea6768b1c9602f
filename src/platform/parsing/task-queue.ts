import { HttpError } from "#lib/base";
import { tooMany } from "../http/limits.ts";

type Bounds = {
  /** Tasks of one tenant that may wait. */
  perTenant: number;
  /** Tasks that may wait in total. */
  total: number;
  /** Tasks of one tenant that may run. */
  running: number;
};

const RETRY_SECONDS = 2;

/** Waiting tasks, served round robin by tenant. */
export class TaskQueue<T extends { tenantId: number }> {
  readonly #bounds: Bounds;
  /** In the order of service: a tenant that was served moves to the end. */
  readonly #waiting = new Map<number, Set<T>>();
  readonly #running = new Map<number, number>();
  #size = 0;

  constructor(bounds: Bounds) {
    this.#bounds = bounds;
  }

  /** Throws HttpError 429 `rate_limited` when the tenant's queue is full, 503 `busy` when the whole queue is. */
  add(task: T): void {
    const own = this.#waiting.get(task.tenantId) ?? new Set();
    if (own.size >= this.#bounds.perTenant) throw tooMany(RETRY_SECONDS);
    if (this.#size >= this.#bounds.total)
      throw new HttpError(503, "busy", "Too many documents are waiting to be parsed; try again.", {
        headers: { "retry-after": String(RETRY_SECONDS) },
      });
    own.add(task);
    this.#waiting.set(task.tenantId, own);
    this.#size++;
  }

  /** The next task, which counts as running until `done`. */
  next(): T | undefined {
    for (const [tenantId, tasks] of this.#waiting) {
      const running = this.#running.get(tenantId) ?? 0;
      if (running >= this.#bounds.running) continue;
      const [task] = tasks;
      if (!task) continue;
      this.remove(task);
      if (this.#waiting.delete(tenantId)) this.#waiting.set(tenantId, tasks);
      this.#running.set(tenantId, running + 1);
      return task;
    }
    return undefined;
  }

  /** False when it is not queued. */
  remove(task: T): boolean {
    const own = this.#waiting.get(task.tenantId);
    if (!own?.delete(task)) return false;
    if (own.size === 0) this.#waiting.delete(task.tenantId);
    this.#size--;
    return true;
  }

  done({ tenantId }: T): void {
    const left = (this.#running.get(tenantId) ?? 1) - 1;
    if (left > 0) this.#running.set(tenantId, left);
    else this.#running.delete(tenantId);
  }
}

import type { Worker } from "node:worker_threads";
import { clientClosed, DOCUMENT_LIMITS, setTimeout, tooComplex } from "#lib/base";
import type { FromThread, ToThread } from "./protocol.ts";
import { startThread } from "./start-thread.ts";
import { TaskQueue } from "./task-queue.ts";

export type PoolOptions = {
  threads: number;
  /** Time limit of one document on a thread. */
  parseMs: number;
  heapMebibytes: number;
  /** Documents of one tenant that may wait for a thread. Each is up to 2 MB. */
  waitingPerTenant: number;
  waiting: number;
  /** An idle thread ends after this time. */
  idleMs: number;
  start(heapMebibytes: number): Worker;
};

const DEFAULTS: PoolOptions = {
  threads: 2,
  parseMs: DOCUMENT_LIMITS.parseMs,
  heapMebibytes: DOCUMENT_LIMITS.heapMebibytes,
  waitingPerTenant: 64,
  waiting: 256,
  idleMs: 60_000,
  start: startThread,
};

export type RunOptions = {
  tenantId: number;
  signal?: AbortSignal | undefined;
  /** The field `text` of the input as bytes. A whole buffer is moved to the thread. */
  utf8?: Uint8Array | undefined;
};

/** The document is not UTF-8. */
export class NotUtf8 extends Error {}

type Task = {
  tenantId: number;
  message: ToThread;
  signal: AbortSignal | undefined;
  resolve(value: unknown): void;
  reject(error: unknown): void;
  onAbort(): void;
};

type Thread = {
  worker: Worker;
  isReady: boolean;
  task: Task | null;
  /** Items of the result's long arrays that have been received. */
  arrays: Map<string, unknown[]>;
  timer: NodeJS.Timeout | undefined;
};

/**
 * Worker threads that parse documents of clients. Threads start with the first document and are replaced when one is
 * terminated. Tenants are served round robin, and one tenant never occupies all of several threads.
 */
export class ParserPool {
  readonly #options: PoolOptions;
  readonly #threads = new Set<Thread>();
  readonly #queue: TaskQueue<Task>;
  #isStopping = false;

  constructor(options: Partial<PoolOptions> = {}) {
    this.#options = { ...DEFAULTS, ...options };
    const { threads, waitingPerTenant, waiting } = this.#options;
    this.#queue = new TaskQueue({ perTenant: waitingPerTenant, total: waiting, running: Math.max(1, threads - 1) });
  }

  /**
   * Runs parser `name` on `input`. Rejects with HttpError 422 `document_too_complex`, 429 or 503 when the queue is
   * full, 499 once `signal` aborts, which ends the work; with NotUtf8.
   */
  run(name: string, input: unknown, { tenantId, signal, utf8 }: RunOptions) {
    return new Promise<unknown>((resolve, reject) => {
      if (signal?.aborted) return reject(clientClosed());
      const task: Task = {
        tenantId,
        message: { type: "parse", parser: name, input, utf8 },
        signal,
        resolve,
        reject,
        onAbort: () => this.#cancel(task),
      };
      this.#queue.add(task);
      signal?.addEventListener("abort", task.onAbort, { once: true });
      this.#assign();
    });
  }

  /** Threads end as soon as they are idle. */
  stop(): void {
    this.#isStopping = true;
    for (const thread of this.#threads) if (!thread.task) this.#end(thread);
  }

  #assign(): void {
    for (;;) {
      const idle = [...this.#threads].find(({ task }) => task === null);
      if (!idle && this.#threads.size >= this.#options.threads) return;
      const task = this.#queue.next();
      if (!task) return;
      try {
        const thread = idle ?? this.#start();
        clearTimeout(thread.timer);
        thread.task = task;
        if (thread.isReady) this.#post(thread);
      } catch (error) {
        this.#finish(task, () => task.reject(error));
      }
    }
  }

  #start(): Thread {
    const worker = this.#options.start(this.#options.heapMebibytes);
    const thread: Thread = { worker, isReady: false, task: null, arrays: new Map(), timer: undefined };
    worker.on("message", (message: FromThread) => this.#receive(thread, message));
    worker.on("error", (error) => this.#lose(thread, error));
    worker.on("exit", (code) => this.#lose(thread, new Error(`A parser thread ended with ${code}`)));
    this.#threads.add(thread);
    return thread;
  }

  #post(thread: Thread): void {
    const task = thread.task as Task;
    try {
      thread.worker.postMessage(task.message, ownedBuffer(task.message));
    } catch (error) {
      return this.#release(thread, () => task.reject(error));
    }
    thread.timer = setTimeout(() => {
      // If this thread was blocked, the result may have arrived: messages are processed before this callback.
      setImmediate(() => {
        if (thread.task === task && thread.arrays.size === 0) this.#fail(thread, tooComplex(TOO_LONG));
      });
    }, this.#options.parseMs);
  }

  #receive(thread: Thread, message: FromThread): void {
    if (message.type === "ready") {
      thread.isReady = true;
      if (thread.task) this.#post(thread);
      return;
    }
    const { task } = thread;
    if (!task) return;
    switch (message.type) {
      case "items": {
        const items = thread.arrays.get(message.field) ?? [];
        for (const item of message.items) items.push(item);
        thread.arrays.set(message.field, items);
        // Other requests are answered between two pieces.
        setImmediate(() => thread.task === task && thread.worker.postMessage({ type: "more" } satisfies ToThread));
        return;
      }
      case "result": {
        const result = thread.arrays.size === 0 ? message.result : merged(message.result as object, thread.arrays);
        return this.#release(thread, () => task.resolve(result));
      }
      // In this and the next cases the parser stopped by itself, so the thread is reusable; starting a new one takes 20 ms of CPU time.
      case "tooComplex":
        return this.#release(thread, () => task.reject(tooComplex(message.reason)));
      case "notUtf8":
        return this.#release(thread, () => task.reject(new NotUtf8("It is not valid UTF-8.")));
      case "failed": {
        const error = Object.assign(new Error(message.error.message), message.error);
        return this.#release(thread, () => task.reject(error));
      }
      default:
        message satisfies never;
    }
  }

  /** The thread is free; `settle` settles its task. */
  #release(thread: Thread, settle: () => void): void {
    clearTimeout(thread.timer);
    const task = thread.task as Task;
    thread.task = null;
    thread.arrays = new Map();
    this.#finish(task, settle);
    if (this.#isStopping) this.#end(thread);
    else thread.timer = setTimeout(() => this.#end(thread), this.#options.idleMs).unref();
    this.#assign();
  }

  /** The document's heap is freed with the thread. */
  #fail(thread: Thread, error: unknown): void {
    const task = thread.task as Task;
    this.#end(thread);
    this.#finish(task, () => task.reject(error));
    this.#assign();
  }

  /** The thread exited without being terminated. */
  #lose(thread: Thread, error: unknown): void {
    if (!this.#threads.has(thread)) return;
    const isMemory = (error as NodeJS.ErrnoException).code === "ERR_WORKER_OUT_OF_MEMORY";
    if (thread.task) return this.#fail(thread, isMemory ? tooComplex(TOO_MUCH) : error);
    this.#end(thread);
  }

  #cancel(task: Task): void {
    if (this.#queue.remove(task)) return this.#finish(task, () => task.reject(clientClosed()), false);
    const thread = [...this.#threads].find((one) => one.task === task);
    if (thread) this.#fail(thread, clientClosed());
  }

  #finish(task: Task, settle: () => void, wasRunning = true): void {
    task.signal?.removeEventListener("abort", task.onAbort);
    if (wasRunning) this.#queue.done(task);
    settle();
  }

  #end(thread: Thread): void {
    clearTimeout(thread.timer);
    this.#threads.delete(thread);
    void thread.worker.terminate();
  }
}

const TOO_LONG = `It takes over ${DOCUMENT_LIMITS.parseMs / 1000} s to parse.`;
const TOO_MUCH = `It takes over ${DOCUMENT_LIMITS.heapMebibytes} MiB of memory to parse.`;

/** A buffer that is moved instead of being copied. A view of a larger buffer is copied. */
function ownedBuffer(message: ToThread): ArrayBuffer[] {
  const bytes = message.type === "parse" ? message.utf8 : undefined;
  return bytes && bytes.byteLength > 0 && bytes.byteLength === bytes.buffer.byteLength
    ? [bytes.buffer as ArrayBuffer]
    : [];
}

function merged(result: object, arrays: ReadonlyMap<string, unknown[]>): object {
  return { ...result, ...Object.fromEntries(arrays) };
}

import { VodboxError } from "./error.ts";

const FIRST_DELAY_MS = 500;
const LONGEST_DELAY_MS = 30_000;

/** Milliseconds before the attempt after `failures` failures: exponential, with jitter. */
export function backoffMs(failures: number, error: unknown): number {
  const exponential = Math.min(FIRST_DELAY_MS * 2 ** (failures - 1), LONGEST_DELAY_MS);
  const requested = error instanceof VodboxError ? (error.retryAfterSeconds ?? 0) * 1000 : 0;
  return Math.max(exponential * (0.75 + Math.random() / 2), requested);
}

/** A server that requests a longer delay gets no retry: the caller decides. */
export const isDelayAcceptable = (error: VodboxError): boolean => (error.retryAfterSeconds ?? 0) * 1000 <= 60_000;

/** Rejects with the signal's reason as soon as it is aborted. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const abort = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", abort);
      resolve();
    }, ms);
    signal?.addEventListener("abort", abort, { once: true });
  });
}

/**
 * Runs `work` with a signal that aborts with the caller's, or after `timeoutMs`, and reports failures of the connection as
 * VodboxError. (AbortSignal.any keeps listeners on the caller's signal in Node.js 20.)
 */
export async function withTimeout<T>(
  work: (signal: AbortSignal) => Promise<T>,
  { signal, timeoutMs }: { signal?: AbortSignal | undefined; timeoutMs: number },
): Promise<T> {
  signal?.throwIfAborted();
  const controller = new AbortController();
  const abort = () => controller.abort(signal?.reason);
  signal?.addEventListener("abort", abort, { once: true });
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    controller.abort();
  }, timeoutMs);
  try {
    return await work(controller.signal);
  } catch (cause) {
    signal?.throwIfAborted();
    if (cause instanceof VodboxError) throw cause;
    if (isLate)
      throw new VodboxError({ status: 0, code: "timeout", message: `No response within ${timeoutMs} ms.`, cause });
    throw new VodboxError({ status: 0, code: "connection_failed", message: "The connection failed.", cause });
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", abort);
  }
}

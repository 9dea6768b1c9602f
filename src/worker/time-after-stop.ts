import { setTimeout } from "#lib/base";
/**
 * Aborts `ms` after `signal` does: what may still be reported when a worker stops must not delay its end for as long as
 * retries take. `signal` may be aborted already.
 */
export function timeAfterStop(signal: AbortSignal, ms: number): AbortSignal {
  const late = new AbortController();
  const begin = () => setTimeout(() => late.abort(), ms).unref();
  if (signal.aborted) begin();
  else signal.addEventListener("abort", begin, { once: true });
  return late.signal;
}

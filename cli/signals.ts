import { setTimeout } from "#lib/base";

/** Longer than a graceful stop may take; after that the process is ended. */
const LIMIT_MS = 14_000;

/**
 * The first SIGTERM or SIGINT stops gracefully, a second one immediately; except in a process that its parent also
 * stops: Ctrl-C reaches both, and the parent's own signal is not a second request. Returns a function that stops the
 * same way, within the same time, for another reason than a signal.
 */
export function onStopSignal(stop: () => Promise<void>, { secondAtOnce = true, isLogged = false } = {}): () => void {
  let stopping = false;
  const begin = () => {
    if (stopping) return;
    stopping = true;
    setTimeout(() => process.exit(0), LIMIT_MS).unref();
    stop().catch((error) => {
      // Logged, and the process exits with 1 (logProcess).
      if (isLogged) throw error;
      process.stderr.write(`vodbox: stopping failed: ${error instanceof Error ? error.message : error}\n`);
      process.exit(1);
    });
  };
  const handle = (signal: NodeJS.Signals) => {
    if (stopping && secondAtOnce) process.exit(signal === "SIGINT" ? 130 : 143);
    begin();
  };
  process.on("SIGTERM", handle);
  process.on("SIGINT", handle);
  return begin;
}

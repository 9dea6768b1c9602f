/** Longer than a graceful stop may take; what hangs after that is cut. */
const LIMIT_MS = 14_000;

/** The first SIGTERM or SIGINT stops in order, a second one at once. */
export function onStopSignal(stop: () => Promise<void>): void {
  let stopping = false;
  const handle = (signal: NodeJS.Signals) => {
    if (stopping) process.exit(signal === "SIGINT" ? 130 : 143);
    stopping = true;
    setTimeout(() => process.exit(0), LIMIT_MS).unref();
    stop().catch((error) => {
      process.stderr.write(`vodbox: stopping failed: ${error instanceof Error ? error.message : error}\n`);
      process.exit(1);
    });
  };
  process.on("SIGTERM", handle);
  process.on("SIGINT", handle);
}

import type { Socket } from "node:net";
import { setInterval } from "#lib/base";
import type { Spawned } from "./spawn-server.ts";

const SILENT_MS = 5000;

/**
 * Closes the outputs of a process that has exited when another process holds them open: `close` would never be emitted. They
 * are closed when nothing waits to be read and nothing has arrived for `silentMs` to twice as long.
 */
export function closeAbandonedOutputs(child: Spawned, silentMs = SILENT_MS): void {
  for (const output of [child.stdout, child.stderr] as (Socket | null)[]) {
    if (!output || output.closed) continue;
    let seenBytes = -1;
    const timer = setInterval(() => {
      if (output.bytesRead === seenBytes && output.readableLength === 0) output.destroy();
      seenBytes = output.bytesRead;
    }, silentMs);
    output.once("close", () => clearInterval(timer));
  }
}

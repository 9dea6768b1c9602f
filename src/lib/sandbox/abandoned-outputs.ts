import type { Socket } from "node:net";
import { onSilence } from "#lib/base";
import type { Spawned } from "./spawn-server.ts";

const SILENT_MS = 5000;

/**
 * Closes the outputs of a process that has exited when another process holds them open: `close` would never be emitted. What
 * waits to be read is read before.
 */
export function closeAbandonedOutputs(child: Spawned, silentMs = SILENT_MS): void {
  for (const output of [child.stdout, child.stderr] as (Socket | null)[])
    if (output && !output.closed) onSilence(output, silentMs, () => output.destroy());
}

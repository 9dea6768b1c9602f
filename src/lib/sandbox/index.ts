export { closeAbandonedOutputs } from "./abandoned-outputs.ts";
export { forgetProcess, killOrphans, processStartTime, recordProcess } from "./orphan-processes.ts";
export { defaultMemoryBytes, missingIsolation, sandboxedCommand, spawnServer } from "./sandbox.ts";
export type { Spawned } from "./spawn-server.ts";

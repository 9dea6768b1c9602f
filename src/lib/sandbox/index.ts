export { closeAbandonedOutputs } from "./abandoned-outputs.ts";
export { cgroupsOf, removeCgroups } from "./cgroups.ts";
export { forgetProcess, killOrphans, processStartTime, recordProcess } from "./orphan-processes.ts";
export { defaultMemoryBytes, describeTotalLimits, missingIsolation, sandboxedCommand, spawnServer } from "./sandbox.ts";
export type { Spawned } from "./spawn-server.ts";

export { binariesAside, builtLibrary, resolveBinaries, sandboxLauncher } from "./binaries.ts";
export { cacheDir } from "./cache-dir.ts";
export { ChildSupervisor, type Exit, spawnSelf } from "./child-supervisor.ts";
export { embedded, embeddedMigrations, embeddedNames, programVersion } from "./embedded.ts";
export { type PackedFile, packedAsset, unpacked } from "./extract.ts";
export { makeFolder } from "./make-folder.ts";

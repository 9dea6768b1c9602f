import type { Logger } from "pino";
import { fileCache } from "./file-cache.ts";
import { redisCache } from "./redis-cache.ts";
import type { SharedCache } from "./shared-cache.ts";

/** Where results are cached in addition to the memory of this process. `path` null: in the data directory. */
export type CacheLocation = { kind: "memory" } | { kind: "fs"; path: string | null } | { kind: "redis"; url: string };

export type CacheContext = {
  log: Logger;
  /** Directory of a file cache without a path. */
  folder: string;
  /** Free disk space to keep. */
  minFreeBytes: number;
};

/** Each place that computes a result has its own bounded cache in memory, which is read first. */
const memoryCache: SharedCache = { get: async () => null, set() {}, redis: () => null, close: async () => {} };

/** Opens without waiting for a server. Throws UserError when a directory cannot be created. */
export function openCache(location: CacheLocation, { log, folder, minFreeBytes }: CacheContext): SharedCache {
  switch (location.kind) {
    case "memory":
      return memoryCache;
    case "fs":
      return fileCache(location.path ?? folder, { log, minFreeBytes });
    case "redis":
      return redisCache(location.url, log);
  }
}

import { realpathSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { localStore } from "#storage/objects/local.ts";
import { urlSigning } from "#storage/objects/url-signing.ts";
import type { StoreDriver } from "./driver.ts";

const FOLDER = "objects";

/** Files in the data directory. */
export const local: StoreDriver = {
  // All of its settings have defaults.
  check() {},
  async open(config, { signingSecret, baseUrl, onlyReads = false, clusterWorker }) {
    const store = localStore({
      root: join(config.data_dir, FOLDER),
      signing: urlSigning(signingSecret, baseUrl),
      minFreeBytes: config.min_free_bytes,
      storeProcesses: clusterWorker ?? undefined,
    });
    // A process that only reads may run next to others, so files that look abandoned may be in use.
    if (!onlyReads) await store.sweepTemporary();
    return store;
  },
  locationOf: (config) => `folder ${realpathSync(join(config.data_dir, FOLDER))} of ${hostname()}`,
  // Its presigned URLs are URLs of this server.
  deliveryOf: () => "proxy",
  container: "directory",
  folder: FOLDER,
  isInDataDir: true,
};

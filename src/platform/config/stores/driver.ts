import type { StoreProcesses } from "#storage/objects/folders.ts";
import type { ObjectStore } from "#storage/objects/store.ts";
import type { Config } from "../load.ts";

/** How players get segments: redirected to storage, from presigned URLs in playlists, or through this server. */
export type Delivery = Config["s3_delivery"];

export type StoreContext = {
  signingSecret: string;
  /** Base of the URLs of this server. */
  baseUrl: () => string;
  /** The process only reads, next to others that may write. */
  onlyReads?: boolean;
  /** Index of this process among those on the data directory. */
  clusterWorker?: StoreProcesses | null;
};

/** One kind of object storage, as the settings describe it. Code asks for these properties, never for the kind. */
export type StoreDriver = {
  /** Checks that its settings are complete. Throws one UserError that names all missing ones. */
  check(config: Config): void;
  /** Throws the UserError of `check`. */
  open(config: Config, context: StoreContext): Promise<ObjectStore>;
  /** Identifies the objects: equal on two servers exactly when they share them. The store has been opened. */
  locationOf(config: Config): string;
  deliveryOf(config: Config): Delivery;
  /** The noun for what contains the objects, in messages. */
  container: string;
  /** The directory of its files in the data directory: the objects, or what waits to be sent. */
  folder: string;
  /** Whether the objects are in `folder`, so that they are created, moved and lost with the data directory. */
  isInDataDir: boolean;
};

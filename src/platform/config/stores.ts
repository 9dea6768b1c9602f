import { UserError } from "#lib/base";
import type { StoreKind } from "#model/enums.ts";
import type { ObjectStore } from "#storage/objects/store.ts";
import type { Config } from "./load.ts";
import type { StoreContext, StoreDriver } from "./stores/driver.ts";
import { local } from "./stores/local.ts";
import { s3 } from "./stores/s3.ts";

const DRIVERS: Record<StoreKind, StoreDriver> = { local, s3 };

/** Throws UserError for a kind of another version, which a row of the database may name. */
export function storeDriver(kind: StoreKind): StoreDriver {
  if (Object.hasOwn(DRIVERS, kind)) return DRIVERS[kind];
  throw new UserError(`Objects are in ${kind} storage, which this version of vodbox does not support.`);
}

/**
 * Returns the store of a kind as the settings describe it, the same object each time. Throws a UserError that names
 * missing settings.
 */
export type OpenStore = (kind: StoreKind) => Promise<ObjectStore>;

export function storesOf(config: Config, context: StoreContext): OpenStore {
  const opened = new Map<StoreKind, Promise<ObjectStore>>();
  const open: OpenStore = async (kind) => storeDriver(kind).open(config, context);
  return (kind) => {
    const known = opened.get(kind);
    if (known) return known;
    const opening = open(kind);
    opened.set(kind, opening);
    // Settings that were missing may be present at the next call.
    opening.catch(() => opened.delete(kind));
    return opening;
  };
}

import type { App } from "#app.ts";
import { HttpError } from "#lib/base";
import type { SwitchingStore } from "#storage/objects/switching.ts";

/** The object store; throws 503 when the operator has disabled it. */
export function storageOf(app: App): SwitchingStore {
  if (app.objects) return app.objects;
  throw new HttpError(503, "storage_not_configured", "Object storage is not configured on this server.");
}

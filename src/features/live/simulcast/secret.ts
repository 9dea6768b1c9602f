import { createHmac } from "node:crypto";
import type { App } from "#app.ts";
import { memoizeByObject } from "#lib/base";
import { sealText, unsealText } from "#platform/config/sealed-text.ts";

/** Separate from the key of webhook secrets. */
const keyOf = memoizeByObject((secrets: App["secrets"]) =>
  createHmac("sha256", secrets.signing_secret).update("simulcast stream keys").digest(),
);

/** A stream key as it is stored: access to the database, or a backup of it, does not allow publishing. */
export const sealStreamKey = (app: App, tenantId: number, streamKey: string): string =>
  sealText(keyOf(app.secrets), `tenant:${tenantId}`, streamKey);

/** Null when it was stored with another signing secret. */
export function readStreamKey(
  app: App,
  { tenantId, streamKey }: { tenantId: number; streamKey: string },
): string | null {
  try {
    return unsealText(keyOf(app.secrets), `tenant:${tenantId}`, streamKey);
  } catch {
    return null;
  }
}

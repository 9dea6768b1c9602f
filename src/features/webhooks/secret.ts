import { createHmac, randomBytes } from "node:crypto";
import type { App } from "#app.ts";
import { memoizeByObject } from "#lib/base";
import { sealText, unsealText } from "#platform/config/sealed-text.ts";

/** `whsec_` and base64 of 32 bytes. Shown once; its holder can sign deliveries. */
export const newSigningSecret = () => `whsec_${randomBytes(32).toString("base64")}`;

/** A separate key: other signatures by the signing secret reveal nothing about it. */
const keyOf = memoizeByObject((secrets: App["secrets"]) =>
  createHmac("sha256", secrets.signing_secret).update("webhook secrets").digest(),
);

/**
 * Encrypts the secret for storage: access to the database, or a backup of it, does not allow signing. Bound to its
 * tenant.
 */
export const encipher = (app: App, tenantId: number, secret: string): string =>
  sealText(keyOf(app.secrets), `tenant:${tenantId}`, secret);

/** Throws when it was encrypted under another signing secret, or for another tenant. */
export const decipher = (app: App, tenantId: number, ciphertext: string): string =>
  unsealText(keyOf(app.secrets), `tenant:${tenantId}`, ciphertext);

import { createCipheriv, createDecipheriv, createHmac, randomBytes } from "node:crypto";
import type { App } from "../../app.ts";
import { memoizeByObject } from "../../lib/memoize-by-object.ts";

/** `whsec_` and base64 of 32 bytes. Shown once; its holder can sign deliveries. */
export const newSigningSecret = () => `whsec_${randomBytes(32).toString("base64")}`;

const IV_BYTES = 12;
const TAG_BYTES = 16;

/** A separate key: other signatures by the signing secret reveal nothing about it. */
const keyOf = memoizeByObject((secrets: App["secrets"]) =>
  createHmac("sha256", secrets.signing_secret).update("webhook secrets").digest(),
);

/**
 * Encrypts the secret with AES-256-GCM for storage: access to the database, or a backup of it, does not allow signing.
 * Bound to its tenant.
 */
export function encipher(app: App, tenantId: number, secret: string): string {
  const iv = randomBytes(IV_BYTES);
  const cipher = createCipheriv("aes-256-gcm", keyOf(app.secrets), iv).setAAD(Buffer.from(`tenant:${tenantId}`));
  const body = Buffer.concat([cipher.update(secret, "utf8"), cipher.final()]);
  return Buffer.concat([iv, body, cipher.getAuthTag()]).toString("base64url");
}

/** Throws when it was encrypted under another signing secret, or for another tenant. */
export function decipher(app: App, tenantId: number, ciphertext: string): string {
  const bytes = Buffer.from(ciphertext, "base64url");
  const iv = bytes.subarray(0, IV_BYTES);
  const decipher = createDecipheriv("aes-256-gcm", keyOf(app.secrets), iv)
    .setAAD(Buffer.from(`tenant:${tenantId}`))
    .setAuthTag(bytes.subarray(-TAG_BYTES));
  return decipher.update(bytes.subarray(IV_BYTES, -TAG_BYTES), undefined, "utf8") + decipher.final("utf8");
}

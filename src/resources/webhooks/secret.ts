import { createCipheriv, createDecipheriv, createHmac, randomBytes } from "node:crypto";
import type { App } from "../../app.ts";
import { memoizeByObject } from "../../lib/memoize-by-object.ts";

/** `whsec_` and base64 of 32 bytes. Shown once; whoever has it can sign as we do. */
export const newSigningSecret = () => `whsec_${randomBytes(32).toString("base64")}`;

const IV_BYTES = 12;
const TAG_BYTES = 16;

/** A key of its own: what the signing secret signs elsewhere tells nothing of it. */
const keyOf = memoizeByObject((secrets: App["secrets"]) =>
  createHmac("sha256", secrets.signing_secret).update("webhook secrets").digest(),
);

/** As it is kept, AES-256-GCM: whoever reads the database alone, or a backup of it, cannot sign. Bound to its tenant. */
export function encipher(app: App, tenantId: number, secret: string): string {
  const iv = randomBytes(IV_BYTES);
  const cipher = createCipheriv("aes-256-gcm", keyOf(app.secrets), iv).setAAD(Buffer.from(`tenant:${tenantId}`));
  const body = Buffer.concat([cipher.update(secret, "utf8"), cipher.final()]);
  return Buffer.concat([iv, body, cipher.getAuthTag()]).toString("base64url");
}

/** Throws when it was enciphered under another signing secret, or for another tenant. */
export function decipher(app: App, tenantId: number, kept: string): string {
  const bytes = Buffer.from(kept, "base64url");
  const iv = bytes.subarray(0, IV_BYTES);
  const decipher = createDecipheriv("aes-256-gcm", keyOf(app.secrets), iv)
    .setAAD(Buffer.from(`tenant:${tenantId}`))
    .setAuthTag(bytes.subarray(-TAG_BYTES));
  return decipher.update(bytes.subarray(IV_BYTES, -TAG_BYTES), undefined, "utf8") + decipher.final("utf8");
}

import type { WebhookEvent } from "../../../build/client/methods.ts";

/** Headers as a Fetch `Headers`, or as Node.js has them. */
export type WebhookHeaders = Headers | Record<string, string | readonly string[] | undefined>;

export type VerifyOptions = {
  /** Largest difference between the time of the signature and now; default 300. */
  toleranceSeconds?: number;
};

/** A delivery that must be refused, with status 400. */
export class WebhookVerificationError extends Error {
  override readonly name = "WebhookVerificationError";
  readonly code: "signature_missing" | "signature_invalid" | "timestamp_outside_tolerance";

  constructor(code: WebhookVerificationError["code"], message: string) {
    super(message);
    this.code = code;
  }
}

/** During a rotation there are two; more would only be work. */
const MAX_SIGNATURES = 8;

/**
 * Verifies a delivery, and returns its event. `body` is the raw body, byte for byte. During a rotation of the secret, pass the
 * old and the new one. Throws WebhookVerificationError.
 */
export async function verifyWebhook(
  body: string | Uint8Array,
  headers: WebhookHeaders,
  secret: string | readonly string[],
  { toleranceSeconds = 300 }: VerifyOptions = {},
): Promise<WebhookEvent> {
  const secrets = [secret].flat().filter(Boolean);
  if (secrets.length === 0) throw new TypeError("verifyWebhook requires the secret of the webhook endpoint.");
  const { timestamp, signatures } = parsed(headerOf(headers, "svc-signature"));
  const bytes = typeof body === "string" ? new TextEncoder().encode(body) : body;
  const signed = concatenated(new TextEncoder().encode(`${timestamp}.`), bytes);
  if (!(await isSigned(signed, signatures, secrets)))
    throw new WebhookVerificationError("signature_invalid", "The signature does not match the body and the secret.");
  // Negated, so that NaN is refused.
  if (!(Math.abs(Date.now() / 1000 - Number(timestamp)) <= toleranceSeconds))
    throw new WebhookVerificationError("timestamp_outside_tolerance", "The signature is too old, or of the future.");
  return JSON.parse(new TextDecoder().decode(bytes)) as WebhookEvent;
}

/** `t=<unix seconds>,v1=<hex>[,v1=<hex>]` */
function parsed(header: string): { timestamp: string; signatures: Uint8Array<ArrayBuffer>[] } {
  const parts = header.slice(0, 4096).split(",");
  const valuesOf = (name: string) =>
    parts.filter((part) => part.startsWith(`${name}=`)).map((part) => part.slice(name.length + 1));
  const timestamp = valuesOf("t")[0] ?? "";
  const signatures = valuesOf("v1").filter((hex) => /^[0-9a-f]{64}$/i.test(hex));
  if (!/^\d{1,12}$/.test(timestamp) || signatures.length === 0)
    throw new WebhookVerificationError("signature_missing", "The header Svc-Signature is missing or malformed.");
  return { timestamp, signatures: signatures.slice(0, MAX_SIGNATURES).map(fromHex) };
}

async function isSigned(
  bytes: Uint8Array<ArrayBuffer>,
  signatures: Uint8Array<ArrayBuffer>[],
  secrets: readonly string[],
): Promise<boolean> {
  const { subtle } = crypto;
  for (const secret of secrets) {
    const hmac = { name: "HMAC", hash: "SHA-256" };
    const key = await subtle.importKey("raw", new TextEncoder().encode(secret), hmac, false, ["verify"]);
    // Compares in constant time.
    for (const signature of signatures) if (await subtle.verify("HMAC", key, signature, bytes)) return true;
  }
  return false;
}

function headerOf(headers: WebhookHeaders, name: string): string {
  if (headers instanceof Headers) return headers.get(name) ?? "";
  const value = Object.entries(headers).find(([each]) => each.toLowerCase() === name)?.[1];
  return typeof value === "string" ? value : (value?.[0] ?? "");
}

const fromHex = (hex: string) => Uint8Array.from(hex.match(/../g) ?? [], (byte) => Number.parseInt(byte, 16));

function concatenated(first: Uint8Array, second: Uint8Array): Uint8Array<ArrayBuffer> {
  const result = new Uint8Array(first.length + second.length);
  result.set(first);
  result.set(second, first.length);
  return result;
}

import { createVerify, X509Certificate } from "node:crypto";
import { crc32 } from "node:zlib";
import { LRUCache } from "lru-cache";
import { abortAfter } from "#lib/base";
import { InvalidSignature, type Notification, PaymentFailed } from "./provider.ts";

/** PayPal retries for three days; each notification is processed once, however late. */
const OLDEST_MS = 4 * 24 * 3_600_000;
const AHEAD_MS = 300_000;
const TIMEOUT_MS = 10_000;
const MAX_BYTES = 64 * 1024;
const MAX_AT_ONCE = 4;
const CERT_PATH = /^\/v1\/notifications\/certs\/CERT-[A-Za-z0-9-]{1,100}$/;

type Options = { url: URL; webhookId: string };

/**
 * Signatures are verified here instead of by a call to PayPal, so that forged notifications cause no calls with our
 * credentials. The certificate is trusted because of its location: PayPal's own host of our mode (live or sandbox),
 * over TLS. It must verify the signature and be valid now; a chain to a public root is not required, because PayPal may
 * not send one.
 */
export function paypalSignatures({ url, webhookId }: Options) {
  const known = new LRUCache<string, readonly X509Certificate[]>({ max: 8 });
  const hosts = certificateHosts(url);
  let underWay = 0;

  async function chainAt(address: string): Promise<readonly X509Certificate[]> {
    const from = URL.canParse(address) ? new URL(address) : null;
    if (!from || from.protocol !== url.protocol || !hosts.has(from.host) || !CERT_PATH.test(from.pathname))
      throw new InvalidSignature("The certificate is not from PayPal, or belongs to the other mode (live or sandbox).");
    const cached = known.get(from.href);
    if (cached) return cached;
    // Anyone can name certificates that do not exist: few are fetched at once, and PayPal retries notifications that
    // had to wait.
    if (underWay >= MAX_AT_ONCE) throw new PaymentFailed("Too many certificates are being fetched.");
    underWay++;
    try {
      const chain = chainOf(await load(from));
      known.set(from.href, chain);
      return chain;
    } finally {
      underWay--;
    }
  }

  return {
    /** Throws NotGenuine; PaymentFailed when the certificate cannot be fetched. */
    async verify({ headers, body, now }: Notification): Promise<void> {
      const sent = (name: string) => headers.get(`paypal-${name}`) ?? "";
      const time = sent("transmission-time");
      const age = now - Date.parse(time);
      if (Number.isNaN(age) || age > OLDEST_MS || age < -AHEAD_MS)
        throw new InvalidSignature("The notification is too old.");
      if (sent("auth-algo") !== "SHA256withRSA")
        throw new InvalidSignature("The signature algorithm is not supported.");
      const chain = await chainAt(sent("cert-url"));
      requireValid(chain, now);
      const signed = `${sent("transmission-id")}|${time}|${webhookId}|${crc32(body)}`;
      const isGenuine = createVerify("sha256")
        .update(signed)
        .verify((chain[0] as X509Certificate).publicKey, sent("transmission-sig"), "base64");
      if (!isGenuine) throw new InvalidSignature("The signature is wrong.");
    },
  };
}

/** PayPal uses both of its hosts in certificate URLs; a test server only its own. */
function certificateHosts({ host }: URL): ReadonlySet<string> {
  if (host === "api-m.paypal.com" || host === "api.paypal.com") return new Set(["api.paypal.com", "api-m.paypal.com"]);
  const isSandbox = host === "api-m.sandbox.paypal.com" || host === "api.sandbox.paypal.com";
  return new Set(isSandbox ? ["api.sandbox.paypal.com", "api-m.sandbox.paypal.com"] : [host]);
}

async function load(url: URL): Promise<string> {
  try {
    const answer = await fetch(url, { redirect: "error", signal: abortAfter(TIMEOUT_MS) });
    if (answer.status === 404) throw new InvalidSignature("The certificate does not exist.");
    if (!answer.ok) throw new PaymentFailed(`PayPal responded with status ${answer.status} for its certificate.`);
    const chunks: Uint8Array[] = [];
    let bytes = 0;
    for await (const chunk of answer.body ?? []) {
      bytes += chunk.length;
      if (bytes > MAX_BYTES) throw new InvalidSignature("The file is not a certificate.");
      chunks.push(chunk);
    }
    return Buffer.concat(chunks).toString("latin1");
  } catch (error) {
    if (error instanceof InvalidSignature || error instanceof PaymentFailed) throw error;
    throw new PaymentFailed(`PayPal's certificate could not be fetched (${(error as Error).name}).`);
  }
}

function chainOf(pem: string): X509Certificate[] {
  const parts = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  try {
    const chain = parts.map((part) => new X509Certificate(part));
    if (chain.length > 0) return chain;
  } catch {
    // Reported below.
  }
  throw new InvalidSignature("The file is not a certificate.");
}

function requireValid(chain: readonly X509Certificate[], now: number): void {
  for (const [index, certificate] of chain.entries()) {
    const isCurrent = now >= Date.parse(certificate.validFrom) && now <= Date.parse(certificate.validTo);
    const issuer = chain[index + 1];
    const isIssued = !issuer || (certificate.checkIssued(issuer) && certificate.verify(issuer.publicKey));
    if (!isCurrent || !isIssued) throw new InvalidSignature("The certificate is not valid.");
  }
}

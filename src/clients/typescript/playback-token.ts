export type PlaybackTokenOptions = {
  /** Id of the signing key, `sk_…`. */
  keyId: string;
  /** Its private key: PKCS#8 PEM, or base64 of that, as the API returns it. RSA or Ed25519. */
  privateKey: string;
  /** What the token is for: `vid_…`, your own `external_id`, or the asset's number. */
  asset: string | number;
  /** `video` (the default) covers everything; the others only their images. */
  type?: keyof typeof AUDIENCES;
  /** Default 3600. */
  expiresInSeconds?: number;
};

const AUDIENCES = { video: "v", thumbnail: "t", storyboard: "s", animation: "g" } as const;
/** The object identifier 1.3.101.112 (RFC 8410) in DER. */
const ED25519 = [0x06, 0x03, 0x2b, 0x65, 0x70];

/** Issues a playback token, without a request. It is valid until it expires, or its signing key is revoked. */
export async function signPlaybackToken(options: PlaybackTokenOptions): Promise<string> {
  const { keyId, asset, type = "video", expiresInSeconds = 3600 } = options;
  if (!(expiresInSeconds > 0)) throw new RangeError("expiresInSeconds must be greater than 0.");
  const { key, name } = await privateKeyOf(options.privateKey);
  const now = Math.floor(Date.now() / 1000);
  const claims = { sub: String(asset), aud: AUDIENCES[type], exp: now + Math.ceil(expiresInSeconds) };
  const signed = `${encoded({ alg: name, typ: "JWT", kid: keyId })}.${encoded(claims)}`;
  const algorithm = name === "RS256" ? RSA : { name: "Ed25519" };
  const signature = await crypto.subtle.sign(algorithm, key, new TextEncoder().encode(signed));
  return `${signed}.${base64Url(new Uint8Array(signature))}`;
}

const RSA = { name: "RSASSA-PKCS1-v1_5", hash: "SHA-256" };

async function privateKeyOf(text: string): Promise<{ key: CryptoKey; name: "RS256" | "EdDSA" }> {
  const pem = text.includes("-----BEGIN") ? text : atob(text.trim());
  if (pem.includes("-----BEGIN RSA PRIVATE KEY-----"))
    throw new TypeError("The private key is PKCS#1. Convert it: openssl pkcs8 -topk8 -nocrypt -in key.pem");
  const body = /-----BEGIN PRIVATE KEY-----([^-]+)-----END PRIVATE KEY-----/.exec(pem)?.[1];
  if (body === undefined) throw new TypeError("The private key must be PKCS#8 PEM, or base64 of that.");
  const der = Uint8Array.from(atob(body.replace(/\s/g, "")), (char) => char.charCodeAt(0));
  // After the version, in the first bytes.
  const isEd25519 = String(der.subarray(0, 20)).includes(String(ED25519));
  const algorithm = isEd25519 ? { name: "Ed25519" } : RSA;
  const key = await crypto.subtle.importKey("pkcs8", der, algorithm, false, ["sign"]);
  return { key, name: isEd25519 ? "EdDSA" : "RS256" };
}

const encoded = (value: object) => base64Url(new TextEncoder().encode(JSON.stringify(value)));
const base64Url = (bytes: Uint8Array) =>
  btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replaceAll("=", "");

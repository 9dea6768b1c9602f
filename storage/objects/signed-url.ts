import { createHmac, type KeyObject, timingSafeEqual } from "node:crypto";
import { withoutTrailing } from "#lib/base";
import { pathOfUrl, urlPathOf } from "#model/object-keys.ts";
import { checkKey } from "./keys.ts";

export type UrlSigning = {
  secret: string | Uint8Array | KeyObject;
  /** The public URL of this server, without a trailing slash. */
  baseUrl: string;
};

export type SignedUrl = {
  method: "PUT" | "GET";
  key: string;
  expiresAt: Date;
  maxBytes?: number | undefined;
  /** The bytes are one part of a multipart upload. */
  part?: { uploadId: string; partNumber: number } | undefined;
  filename?: string | undefined;
  contentType?: string | undefined;
  /** The lease with which the URL ends. Its form is that of the caller. */
  lease?: string | undefined;
};

export type Verified = { ok: true; address: SignedUrl } | { ok: false; reason: "expired" | "altered" };

const PATH = "/objects/";

/** The parameters in the order in which they are written and signed; there are no others. */
const PARAMETERS = [
  ...(["method", "expires", "max_bytes", "upload_id", "part_number", "filename", "content_type"] as const),
  "lease",
] as const;
type Parameters = Partial<Record<(typeof PARAMETERS)[number], string>>;

/**
 * A URL that allows the operation of `address` until it expires (to the second), and nothing else. Throws InvalidKey.
 */
export function signUrl({ secret, baseUrl }: UrlSigning, address: SignedUrl): string {
  checkKey(address.key);
  const parameters: Parameters = {
    method: address.method,
    expires: String(Math.floor(address.expiresAt.getTime() / 1000)),
  };
  if (address.maxBytes !== undefined) parameters.max_bytes = String(address.maxBytes);
  if (address.part !== undefined) {
    parameters.upload_id = address.part.uploadId;
    parameters.part_number = String(address.part.partNumber);
  }
  if (address.filename !== undefined) parameters.filename = address.filename;
  if (address.contentType !== undefined) parameters.content_type = address.contentType;
  if (address.lease !== undefined) parameters.lease = address.lease;
  let query = "";
  for (const name of PARAMETERS) {
    const value = parameters[name];
    if (value !== undefined) query += `${name}=${encodeURIComponent(value)}&`;
  }
  const path = urlPathOf(address.key);
  return `${baseUrl}${PATH}${path}?${query}sig=${signatureOf(secret, address.key, parameters)}`;
}

/** Verifies a whole URL or a request target (`/objects/…?…`), used with `method`; HEAD may use what GET may. */
export function verifyUrl(
  { secret, baseUrl }: UrlSigning,
  request: { url: string; method: string; now: Date },
): Verified {
  const altered: Verified = { ok: false, reason: "altered" };
  const parsed = parse(request.url, baseUrl);
  if (parsed === null) return altered;
  const { key, parameters, sig } = parsed;
  // Compared as text: several texts decode to the same signature.
  const expected = Buffer.from(signatureOf(secret, key, parameters));
  const signature = Buffer.from(sig);
  if (signature.length !== expected.length || !timingSafeEqual(signature, expected)) return altered;
  if (parameters.method !== (request.method === "HEAD" ? "GET" : request.method)) return altered;
  const expiresAt = new Date(Number(parameters.expires) * 1000);
  // Last, so that a forger learns nothing; and NaN counts as expired.
  if (!(request.now < expiresAt)) return { ok: false, reason: "expired" };
  const {
    method,
    max_bytes,
    upload_id: uploadId,
    part_number,
    filename,
    content_type: contentType,
    lease,
  } = parameters;
  return {
    ok: true,
    address: {
      method: method as SignedUrl["method"],
      key,
      expiresAt,
      maxBytes: max_bytes === undefined ? undefined : Number(max_bytes),
      part: uploadId === undefined ? undefined : { uploadId, partNumber: Number(part_number) },
      filename,
      contentType,
      lease,
    },
  };
}

/** Over the decoded values in an unambiguous form, so that an encoding changed by a proxy does no harm. */
function signatureOf(secret: UrlSigning["secret"], key: string, parameters: Parameters): string {
  const { lease, ...others } = parameters;
  const message = JSON.stringify([
    "vodbox object address 1",
    key,
    ...PARAMETERS.filter((name) => name !== "lease").map((name) => others[name] ?? null),
    // Only where there is one: URLs that an earlier version has signed remain valid.
    ...(lease === undefined ? [] : [lease]),
  ]);
  return createHmac("sha256", secret).update(message).digest("base64url");
}

function parse(url: string, baseUrl: string): { key: string; parameters: Parameters; sig: string } | null {
  const [beforeQuery = "", query = "", ...more] = url.split("?");
  const path = withoutBase(beforeQuery, baseUrl);
  if (more.length > 0 || !path.startsWith(PATH)) return null;
  const parameters: Parameters = {};
  let sig: string | null = null;
  for (const [name, value] of new URLSearchParams(query)) {
    if (name === "sig" && sig === null) sig = value;
    else if (isParameter(name) && parameters[name] === undefined) parameters[name] = value;
    else return null;
  }
  try {
    const key = pathOfUrl(path.slice(PATH.length));
    return sig === null ? null : { key, parameters, sig };
  } catch {
    return null;
  }
}

/** A whole URL, a target with the base's path, or one from which a proxy removed that path. */
function withoutBase(path: string, baseUrl: string): string {
  if (path.startsWith(baseUrl)) return path.slice(baseUrl.length);
  const basePath = withoutTrailing(new URL(baseUrl).pathname, "/");
  return basePath !== "" && path.startsWith(basePath + PATH) ? path.slice(basePath.length) : path;
}

const isParameter = (name: string): name is (typeof PARAMETERS)[number] =>
  (PARAMETERS as readonly string[]).includes(name);

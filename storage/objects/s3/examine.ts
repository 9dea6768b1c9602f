import { abortAfter } from "#lib/base";
import { newProbeKey } from "#model/object-keys.ts";
import type { ObjectStore, StorageClock, StorageFinding } from "../store.ts";
import { type S3Client, S3Error, type S3Options } from "./client.ts";

type Subject = { client: S3Client; store: ObjectStore; options: S3Options };
type ExamineOptions = { origin: string; now: Date };

const ANSWER_MS = 15_000;
const SIGNED_FOR_MS = 300_000;

/** What S3's error codes mean for the settings. */
const ADVICE: Record<string, string> = {
  InvalidAccessKeyId: "S3 does not know the access key; check VODBOX_S3_ACCESS_KEY_ID.",
  SignatureDoesNotMatch: "The secret key does not match the access key; check VODBOX_S3_SECRET_ACCESS_KEY.",
  NoSuchBucket: "The bucket does not exist; create it, or check VODBOX_S3_BUCKET and VODBOX_S3_PATH_STYLE.",
  AccessDenied: "The key has insufficient permissions; apply the policy in docs/operations.md.",
  RequestTimeTooSkewed: "The clocks differ too much; synchronize this machine with NTP.",
  AuthorizationHeaderMalformed: "The region is wrong; check VODBOX_S3_REGION.",
  PermanentRedirect: "The bucket is in another region; check VODBOX_S3_ENDPOINT and VODBOX_S3_REGION.",
};

/** Checks everything that can be misconfigured, and stops where further checks would only repeat the fault. */
export async function examineS3(subject: Subject, { origin, now }: ExamineOptions): Promise<StorageFinding[]> {
  const { client, store, options } = subject;
  const findings: StorageFinding[] = [];
  const look = async (check: string, work: () => Promise<string>) => {
    try {
      findings.push({ check, ok: true, detail: await work() });
      return true;
    } catch (error) {
      findings.push({ check, ok: false, detail: adviceOf(error) });
      return false;
    }
  };

  if (!(await look("endpoint", () => reach(options)))) return findings;
  await look("clock", () => compareClocks(s3Clock(options), now));
  const isOpen = await look("bucket", async () => {
    await client.ask({ method: "GET", query: { "list-type": "2", "max-keys": "1", prefix: client.prefix } });
    return `the credentials can list the bucket ${options.bucket}`;
  });
  if (!isOpen) return findings;
  const key = newProbeKey();
  const text = "vodbox storage check";
  const isUsable = await look("objects", async () => {
    await store.put(key, Buffer.from(text));
    const object = await store.get(key);
    const read = object && Buffer.concat(await object.body.toArray()).toString();
    if (read !== text) throw new Error("The object read differs from the object written.");
    return "can be written and read";
  });
  if (isUsable) {
    await look("addresses", () => tryAddress(store, key, text));
    await look("cors", () => tryCors(store, key, origin));
    await look("multipart", () => tryMultipart(store, key));
    await look("delete", async () => {
      await store.delete(key);
      if (await store.head(key)) throw new Error("The object still exists after its deletion.");
      return "objects can be deleted";
    });
  }
  return findings;
}

async function reach({ endpoint }: S3Options): Promise<string> {
  const response = await fetch(endpoint, { redirect: "manual", signal: abortAfter(ANSWER_MS) });
  await response.body?.cancel();
  return `${endpoint} responds`;
}

/** S3 refuses signatures that differ from its own time by 15 minutes. */
export const s3Clock = ({ endpoint }: Pick<S3Options, "endpoint">): StorageClock => ({
  owner: "S3",
  maxSkewSeconds: 300,
  limit: "S3 rejects all requests beyond 900 s.",
  /** Unsigned: a signature with a wrong clock would be refused, and any response contains the time. */
  async read() {
    const response = await fetch(endpoint, { redirect: "manual", signal: abortAfter(ANSWER_MS) });
    await response.body?.cancel();
    const serverMs = Date.parse(response.headers.get("date") ?? "");
    return Number.isNaN(serverMs) ? null : new Date(serverMs);
  },
});

async function compareClocks({ owner, maxSkewSeconds, limit, read }: StorageClock, now: Date): Promise<string> {
  const serverTime = await read();
  if (serverTime === null) return `${owner} does not report its time`;
  const skew = Math.round((now.getTime() - serverTime.getTime()) / 1000);
  const comparison = `this machine's clock is ${Math.abs(skew)} s ${skew < 0 ? "behind" : "ahead of"} ${owner}'s`;
  if (Math.abs(skew) <= maxSkewSeconds) return comparison;
  throw new Error(`${comparison}; synchronize it with NTP. ${limit}`);
}

/** Through the URLs that clients and workers receive. */
async function tryAddress(store: ObjectStore, key: string, text: string): Promise<string> {
  const expiresAt = new Date(Date.now() + SIGNED_FOR_MS);
  const put = await store.signPut(key, { expiresAt, maxBytes: text.length, contentType: "text/plain" });
  const sent = await asClient(put.url, { method: "PUT", headers: put.headers, body: text });
  if (!sent.ok) throw refused("PUT", put.url, sent);
  const { url } = await store.signGet(key, { expiresAt });
  const got = await asClient(url);
  if (!got.ok) throw refused("GET", url, got);
  if (got.text !== text) throw new Error(`GET ${new URL(url).origin} returned different bytes than were written.`);
  return `presigned PUT and GET work at ${new URL(url).origin}`;
}

const refused = (method: string, url: string, { status, text }: { status: number; text: string }) => {
  const code = /<Code>(\w+)<\/Code>/.exec(text)?.[1] ?? "";
  const advice = "VODBOX_S3_PUBLIC_URL must reach the bucket with path and Host header unchanged.";
  return new Error(`A presigned ${method} at ${new URL(url).origin} failed with ${status} ${code}. ${advice}`);
};

/** As a browser on our pages sends it (Fetch standard, "CORS protocol"). */
async function tryCors(store: ObjectStore, key: string, origin: string): Promise<string> {
  const expiresAt = new Date(Date.now() + SIGNED_FOR_MS);
  const put = await store.signPut(key, { expiresAt, maxBytes: 100 });
  const get = await store.signGet(key, { expiresAt });
  const lacking: string[] = [];
  for (const { url, method } of [put, get]) {
    const headers = {
      origin,
      "access-control-request-method": method,
      ...(method === "PUT" && { "access-control-request-headers": "content-type" }),
    };
    const { ok, headers: answer } = await asClient(url, { method: "OPTIONS", headers });
    if (!ok || !allows(answer.get("access-control-allow-origin"), origin)) lacking.push(`${method} from ${origin}`);
  }
  const { headers } = await asClient(get.url, { headers: { origin } });
  const exposed = (headers.get("access-control-expose-headers") ?? "").toLowerCase();
  if (!/\betag\b|\*/.test(exposed)) lacking.push("reading the ETag header");
  // A player on another site is redirected here, and its browser then sends no origin.
  const opaque = await asClient(get.url, { headers: { origin: "null" } });
  if (!allows(opaque.headers.get("access-control-allow-origin"), "null")) lacking.push("GET from any other site (*)");
  if (lacking.length === 0) return "browsers may put and get from anywhere";
  throw new Error(
    `The CORS rules of the bucket do not allow ${lacking.join(", ")}; apply the rules in docs/operations.md.`,
  );
}

const allows = (header: string | null, origin: string) => header === "*" || header === origin;

async function tryMultipart(store: ObjectStore, key: string): Promise<string> {
  const uploadId = await store.createMultipart(key, { bytes: 1, partSize: 1 });
  try {
    for await (const one of store.listMultiparts(key))
      if (one.uploadId === uploadId) return "multipart uploads can be created, listed and aborted";
    throw new Error("A created multipart upload is not listed.");
  } finally {
    await store.abortMultipart(key, uploadId);
  }
}

async function asClient(url: string, init: RequestInit = {}) {
  const response = await fetch(url, { ...init, redirect: "manual", signal: abortAfter(ANSWER_MS) });
  return { ok: response.ok, status: response.status, headers: response.headers, text: await response.text() };
}

function adviceOf(error: unknown): string {
  const { message, cause } = error as Error;
  const code = error instanceof S3Error ? error.code : "";
  const advice = ADVICE[code];
  if (advice) return `${advice} (${code})`;
  // fetch itself only reports "fetch failed".
  return message === "fetch failed" && cause instanceof Error ? `It cannot be reached: ${cause.message}.` : message;
}

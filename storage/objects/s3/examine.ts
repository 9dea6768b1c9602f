import { randomBytes } from "node:crypto";
import type { ObjectStore, StorageFinding } from "../store.ts";
import { type S3Client, S3Error, type S3Options } from "./client.ts";

type Subject = { client: S3Client; store: ObjectStore; options: S3Options };
type Wish = { origin: string; now: Date };

/** S3 refuses what was signed a quarter of an hour away from its own time. */
const MAX_SKEW_S = 300;
const ANSWER_MS = 15_000;
const SIGNED_FOR_MS = 300_000;

/** What S3's codes mean for whoever wrote the settings. */
const ADVICE: Record<string, string> = {
  InvalidAccessKeyId: "S3 does not know the access key; look at VODBOX_S3_ACCESS_KEY_ID.",
  SignatureDoesNotMatch: "The secret key is not that of the access key; look at VODBOX_S3_SECRET_ACCESS_KEY.",
  NoSuchBucket: "There is no such bucket; create it, or look at VODBOX_S3_BUCKET and VODBOX_S3_PATH_STYLE.",
  AccessDenied: "The key may not do that; give it the policy in docs/operations.md.",
  RequestTimeTooSkewed: "The clocks are too far apart; set this machine's by NTP.",
  AuthorizationHeaderMalformed: "The region is wrong; look at VODBOX_S3_REGION.",
  PermanentRedirect: "The bucket lies in another region; look at VODBOX_S3_ENDPOINT and VODBOX_S3_REGION.",
};

/** Looks at everything that an operator can get wrong, and stops where the rest would only repeat the fault. */
export async function examineS3(subject: Subject, { origin, now }: Wish): Promise<StorageFinding[]> {
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
  await look("clock", () => compareClocks(options, now));
  const isOpen = await look("bucket", async () => {
    await client.ask({ method: "GET", query: { "list-type": "2", "max-keys": "1", prefix: client.prefix } });
    return `the credentials open ${options.bucket} and may list it`;
  });
  if (!isOpen) return findings;
  const key = `vodbox-check-${randomBytes(6).toString("hex")}`;
  const text = "vodbox looks whether storage works";
  const isUsable = await look("objects", async () => {
    await store.put(key, Buffer.from(text));
    const found = await store.get(key);
    const read = found && Buffer.concat(await found.body.toArray()).toString();
    if (read !== text) throw new Error("What was put is not what was read.");
    return "are put and read";
  });
  if (isUsable) {
    await look("addresses", () => tryAddress(store, key, text));
    await look("cors", () => tryCors(store, key, origin));
    await look("multipart", () => tryMultipart(store, key));
    await look("delete", async () => {
      await store.delete(key);
      if (await store.head(key)) throw new Error("The object is still there after its deletion.");
      return "objects are deleted";
    });
  }
  return findings;
}

async function reach({ endpoint }: S3Options): Promise<string> {
  const response = await fetch(endpoint, { redirect: "manual", signal: AbortSignal.timeout(ANSWER_MS) });
  await response.body?.cancel();
  return `${endpoint} answers`;
}

/** Unsigned: what was signed by a clock that is far off would be refused, and any answer tells the time. */
export async function serverTime({ endpoint }: Pick<S3Options, "endpoint">): Promise<Date | null> {
  const response = await fetch(endpoint, { redirect: "manual", signal: AbortSignal.timeout(ANSWER_MS) });
  await response.body?.cancel();
  const told = Date.parse(response.headers.get("date") ?? "");
  return Number.isNaN(told) ? null : new Date(told);
}

async function compareClocks(options: S3Options, now: Date): Promise<string> {
  const theirs = await serverTime(options);
  if (theirs === null) return "S3 tells no time";
  const skew = Math.round((now.getTime() - theirs.getTime()) / 1000);
  const told = `this machine's clock is ${Math.abs(skew)} s ${skew < 0 ? "behind" : "ahead of"} S3's`;
  if (Math.abs(skew) <= MAX_SKEW_S) return told;
  throw new Error(`${told}; set it by NTP. Beyond 900 s S3 refuses everything.`);
}

/** Through the addresses that clients and workers are given. */
async function tryAddress(store: ObjectStore, key: string, text: string): Promise<string> {
  const expiresAt = new Date(Date.now() + SIGNED_FOR_MS);
  const put = await store.signPut(key, { expiresAt, maxBytes: text.length, contentType: "text/plain" });
  const sent = await asClient(put.url, { method: "PUT", headers: put.headers, body: text });
  if (!sent.ok) throw refused("PUT", put.url, sent);
  const { url } = await store.signGet(key, { expiresAt });
  const got = await asClient(url);
  if (!got.ok) throw refused("GET", url, got);
  if (got.text !== text) throw new Error(`GET ${new URL(url).origin} gave something else than was put.`);
  return `presigned PUT and GET work at ${new URL(url).origin}`;
}

const refused = (method: string, url: string, { status, text }: { status: number; text: string }) => {
  const code = /<Code>(\w+)<\/Code>/.exec(text)?.[1] ?? "";
  const advice = "VODBOX_S3_PUBLIC_URL must lead to the bucket with path and Host header unchanged.";
  return new Error(`A presigned ${method} at ${new URL(url).origin} was answered ${status} ${code}. ${advice}`);
};

/** As a browser on our pages would ask (Fetch standard, "CORS protocol"). */
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
  // A player on another site is redirected here, and then its browser names no origin.
  const opaque = await asClient(get.url, { headers: { origin: "null" } });
  if (!allows(opaque.headers.get("access-control-allow-origin"), "null")) lacking.push("GET from any other site (*)");
  if (lacking.length === 0) return "browsers may put and get from anywhere";
  throw new Error(`The bucket's CORS rules refuse ${lacking.join(", ")}; set those in docs/operations.md.`);
}

const allows = (header: string | null, origin: string) => header === "*" || header === origin;

async function tryMultipart(store: ObjectStore, key: string): Promise<string> {
  const uploadId = await store.createMultipart(key, { bytes: 1, partSize: 1 });
  try {
    for await (const one of store.listMultiparts(key))
      if (one.uploadId === uploadId) return "uploads in parts are made, listed and aborted";
    throw new Error("An upload in parts that was begun is not listed.");
  } finally {
    await store.abortMultipart(key, uploadId);
  }
}

async function asClient(url: string, init: RequestInit = {}) {
  const response = await fetch(url, { ...init, redirect: "manual", signal: AbortSignal.timeout(ANSWER_MS) });
  return { ok: response.ok, status: response.status, headers: response.headers, text: await response.text() };
}

function adviceOf(error: unknown): string {
  const { message, cause } = error as Error;
  const code = error instanceof S3Error ? error.code : "";
  const advice = ADVICE[code];
  if (advice) return `${advice} (${code})`;
  // What fetch itself says is "fetch failed".
  return message === "fetch failed" && cause instanceof Error ? `It cannot be reached: ${cause.message}.` : message;
}

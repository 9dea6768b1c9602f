import { once } from "node:events";
import { type ClientRequest, Agent as HttpAgent, request as httpRequest, type IncomingMessage } from "node:http";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";
import type { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { withoutTrailing } from "../../../src/lib/without-trailing.ts";
import { StorageFull, StorageUnavailable } from "../store.ts";
import { collect } from "../write-body.ts";
import { type Credentials, canonicalQuery, encoded, sha256, signer, UNSIGNED } from "./sigv4.ts";
import { textOf } from "./xml.ts";

export type S3Options = Credentials & {
  endpoint: string;
  bucket: string;
  /** The bucket in the path, else in the host name. */
  pathStyle: boolean;
  /** Of every key; empty, or ending in a slash. */
  prefix: string;
  /** Stands in the endpoint's place in the addresses that others are given. */
  publicUrl?: string | undefined;
  /** Longest wait before the second try, in ms; doubles with each. */
  backoffMs?: number;
};

export type S3Request = {
  method: "GET" | "PUT" | "POST" | "HEAD" | "DELETE";
  /** Without the prefix; the bucket itself when absent. */
  key?: string;
  query?: Record<string, string>;
  headers?: Record<string, string>;
  /** A stream is sent once; everything else again after a failure that may pass. */
  body?: Uint8Array | { stream: Readable; bytes: number };
  signal?: AbortSignal | undefined;
};

/** What S3 refused, by its own code (REST API of Amazon S3, "Error responses"). A HEAD has no code: the status alone. */
export class S3Error extends Error {
  readonly status: number;
  readonly code: string;
  constructor(status: number, code: string, message: string) {
    super(`S3 answered ${status} ${code}${message && `: ${message}`}`);
    this.name = "S3Error";
    this.status = status;
    this.code = code;
  }
}

export const isMissing = (error: unknown) => error instanceof S3Error && error.status === 404;

const TRIES = 5;
const BACKOFF_MS = 150;
const MAX_BACKOFF_MS = 5000;
const CONNECT_MS = 5000;
/** A server that does not know Expect says nothing, and gets the body all the same. */
const CONTINUE_MS = 1000;
/** For the head of an answer. A body may stand still for as long as its reader does. */
const ANSWER_MS = 120_000;
const PASSING_STATUS = [408, 429, 500, 502, 503, 504];
const PASSING_CODES = ["RequestTimeout", "SlowDown", "InternalError", "ServiceUnavailable", "OperationAborted"];

export type S3Client = ReturnType<typeof s3Client>;

/** Signed requests to one bucket, over connections that are kept. */
export function s3Client(options: S3Options) {
  const { sign, presign } = signer(options);
  const inside = placeOf(options, options.endpoint);
  const outside = placeOf(options, options.publicUrl ?? options.endpoint);
  const isTls = inside.protocol === "https:";
  const agent = new (isTls ? HttpsAgent : HttpAgent)({ keepAlive: true, maxFreeSockets: 32, scheduling: "lifo" });
  const dial = isTls ? httpsRequest : httpRequest;
  const backoffMs = options.backoffMs ?? BACKOFF_MS;
  const pathOf = (base: string, key?: string) =>
    key === undefined ? base || "/" : `${base}/${(options.prefix + key).split("/").map(encoded).join("/")}`;

  async function exchange(request: S3Request): Promise<IncomingMessage> {
    const { method, key, query = {}, body, signal } = request;
    signal?.throwIfAborted();
    const path = pathOf(inside.path, key);
    const payload = body === undefined ? sha256("") : UNSIGNED;
    const signed = { method, host: inside.host, path, query, headers: request.headers ?? {}, now: new Date() };
    const headers: Record<string, string | number> = sign(signed, payload);
    if (method === "PUT" || method === "POST")
      headers["content-length"] = body === undefined ? 0 : "stream" in body ? body.bytes : body.byteLength;
    const isStream = body !== undefined && "stream" in body;
    // RFC 9110, 10.1.1: a refusal comes before the bytes, not on a connection that breaks under them.
    if (isStream) headers.expect = "100-continue";
    const search = canonicalQuery(query);
    const target = search ? `${path}?${search}` : path;
    const outgoing = dial(inside.origin, {
      method,
      // A kept connection may just be closed by the other side, and a stream cannot be sent again.
      agent: isStream ? false : agent,
      headers,
      path: target,
      ...(signal && { signal }),
    });
    const waiting = deadline(outgoing);
    const answered = once(outgoing, "response") as Promise<[IncomingMessage]>;
    answered.catch(() => {});
    try {
      if (isStream) await sendBody(outgoing, body, { answered, signal, onSent: waiting.refresh });
      else outgoing.end(body);
      return (await answered)[0];
    } catch (error) {
      outgoing.destroy();
      throw error;
    } finally {
      waiting.end();
    }
  }

  /** The answer when it is 2xx. Throws S3Error, StorageFull, StorageUnavailable, what `signal` says, or what the body does. */
  async function send(request: S3Request): Promise<IncomingMessage> {
    const isStream = request.body !== undefined && "stream" in request.body;
    for (let attempt = 1; ; attempt++) {
      let failure: unknown;
      try {
        const response = await exchange(request);
        if (response.statusCode && response.statusCode < 300) return response;
        failure = refusal(
          response.statusCode ?? 0,
          request.method === "HEAD" ? drained(response) : await text(response),
        );
      } catch (error) {
        request.signal?.throwIfAborted();
        if (error instanceof BodyFailed) throw error.cause;
        failure = error;
      }
      if (!isPassing(failure)) throw failure;
      if (isStream || attempt === TRIES) throw unavailable(options, failure);
      const most = Math.min(MAX_BACKOFF_MS, backoffMs * 2 ** (attempt - 1));
      // Anywhere in the span, or all who were refused together come back together.
      await sleep(Math.random() * most, undefined, request.signal ? { signal: request.signal } : {});
    }
  }

  return {
    bucket: options.bucket,
    prefix: options.prefix,
    send,
    /** The whole answer, for small ones. Some calls tell of their failure in a body after 200. */
    async ask(request: S3Request): Promise<{ headers: IncomingMessage["headers"]; xml: string }> {
      for (let attempt = 1; ; attempt++) {
        const response = await send(request);
        const xml = await text(response);
        if (!/<Error>/.test(xml)) return { headers: response.headers, xml };
        const failure = refusal(response.statusCode ?? 200, xml);
        if (!isPassing(failure) || attempt === TRIES) throw failure;
        await sleep(backoffMs * attempt);
      }
    },
    /** An address for others, and until when it is good: a week at most. */
    presigned(request: { method: "GET" | "PUT"; key: string } & Pick<S3Request, "query" | "headers">, expiresAt: Date) {
      const { method, key, query = {}, headers = {} } = request;
      const path = pathOf(outside.path, key);
      const signed = presign({ method, host: outside.host, path, query, headers, now: new Date() }, expiresAt);
      return { url: `${outside.origin}${path}?${signed.query}`, expiresAt: signed.expiresAt };
    },
    /** The name of the source in CopyObject. */
    copySource: (key: string) => `/${encoded(options.bucket)}${pathOf("", key)}`,
    publicOrigin: outside.origin,
  };
}

class TimedOut extends Error {
  readonly code = "ETIMEDOUT";
}

/** Ends a request that finds nobody, or is not answered. */
function deadline(outgoing: ClientRequest) {
  const stop = () => outgoing.destroy(new TimedOut("S3 does not answer in time."));
  let timer = setTimeout(stop, CONNECT_MS);
  let isOver = false;
  const onConnect = () => {
    if (isOver) return;
    clearTimeout(timer);
    timer = setTimeout(stop, ANSWER_MS);
  };
  outgoing.once("socket", (socket) => (socket.connecting ? socket.once("connect", onConnect) : onConnect()));
  return {
    refresh: () => void timer.refresh(),
    end: () => {
      isOver = true;
      clearTimeout(timer);
    },
  };
}

/** The body is at fault, not the way to S3. */
class BodyFailed extends Error {}

type Sending = { answered: Promise<unknown>; signal: AbortSignal | undefined; onSent: () => void };

/** Not by a pipeline: it would destroy the body after a failure, and with it the socket that a refusal is told on. */
async function sendBody(
  outgoing: ClientRequest,
  { stream, bytes }: { stream: Readable; bytes: number },
  { answered, signal, onSent }: Sending,
): Promise<void> {
  let isAnswered = false;
  const refused = answered.then(() => {
    isAnswered = true;
  });
  refused.catch(() => {});
  await Promise.race([once(outgoing, "continue"), refused, sleep(CONTINUE_MS, undefined, { ref: false })]);
  if (isAnswered) return;
  const source = collect(stream, { maxBytes: bytes, signal });
  const next = () => source.next().catch((cause) => Promise.reject(new BodyFailed("", { cause })));
  try {
    let sent = 0;
    for (let batch = await next(); batch !== null; batch = await Promise.race([next(), refused.then(() => null)])) {
      for (const chunk of batch) {
        if (!outgoing.write(chunk)) await Promise.race([once(outgoing, "drain"), refused]);
        // Before its end it can only be a refusal.
        if (isAnswered) return;
        sent += chunk.byteLength;
        onSent();
      }
    }
    if (isAnswered) return;
    if (sent !== bytes) throw new BodyFailed("", { cause: new Error(`The body has ${sent} bytes, not ${bytes}.`) });
    outgoing.end();
  } finally {
    source.stop();
  }
}

/** The bucket's own place: where its keys follow the path. */
function placeOf({ bucket, pathStyle, endpoint }: S3Options, address: string) {
  const url = new URL(address);
  const base = withoutTrailing(url.pathname, "/");
  // An address for others that stands beside the endpoint is the bucket's own when the bucket is in the host name.
  const isBuckets = !pathStyle && address !== endpoint;
  const host = pathStyle || isBuckets ? url.host : `${bucket}.${url.host}`;
  return {
    protocol: url.protocol,
    host,
    origin: `${url.protocol}//${host}`,
    path: pathStyle ? `${base}/${encoded(bucket)}` : base,
  };
}

function refusal(status: number, xml: string): Error {
  const code = textOf(xml, "Code");
  if (status === 507 || code === "QuotaExceeded") return new StorageFull({ cause: new S3Error(status, code, "") });
  return new S3Error(status, code, textOf(xml, "Message"));
}

function isPassing(error: unknown): boolean {
  if (error instanceof S3Error) return PASSING_STATUS.includes(error.status) || PASSING_CODES.includes(error.code);
  if (error instanceof StorageFull) return false;
  // What the network says has a code: ECONNRESET, ECONNREFUSED, ETIMEDOUT, EAI_AGAIN …
  return typeof (error as NodeJS.ErrnoException).code === "string" && (error as Error).name !== "AbortError";
}

const unavailable = ({ endpoint }: S3Options, cause: unknown) =>
  new StorageUnavailable(`The S3 server ${endpoint} does not serve: ${(cause as Error).message}`, { cause });

function drained(response: IncomingMessage): string {
  response.resume();
  return "";
}

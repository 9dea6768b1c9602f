import { once } from "node:events";
import { type ClientRequest, Agent as HttpAgent, request as httpRequest, type IncomingMessage } from "node:http";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";
import type { Readable } from "node:stream";
import { setTimeout, sleep, withoutTrailing } from "#lib/base";
import { pathSegments } from "#model/object-keys.ts";
import { StorageFull, StorageUnavailable } from "../store.ts";
import { collect } from "../write-body.ts";
import { failWhenStalled, readText, TimedOut, TooLong } from "./read-response.ts";
import { type Credentials, canonicalQuery, encoded, sha256, signer, UNSIGNED } from "./sigv4.ts";
import { textOf } from "./xml.ts";

export type S3Options = Credentials & {
  endpoint: string;
  bucket: string;
  /** The bucket in the path, else in the host name. */
  pathStyle: boolean;
  /** Prefix of every key; empty, or ending in a slash. */
  prefix: string;
  /** Replaces the endpoint in presigned URLs. */
  publicUrl?: string | undefined;
  /** Longest delay before the second attempt, in ms; doubles with each. */
  backoffMs?: number;
  /** How long S3 may send nothing of a body, in ms. */
  stallMs?: number;
};

export type S3Request = {
  method: "GET" | "PUT" | "POST" | "HEAD" | "DELETE";
  /** Without the prefix; the bucket itself when missing. */
  key?: string;
  query?: Record<string, string>;
  headers?: Record<string, string>;
  /** A stream is sent once; other requests are retried after temporary failures. */
  body?: Uint8Array | { stream: Readable; bytes: number };
  signal?: AbortSignal | undefined;
};

/** An error of S3, with its code (REST API of Amazon S3, "Error responses"). A HEAD has no code, only the status. */
export class S3Error extends Error {
  readonly status: number;
  readonly code: string;
  constructor(status: number, code: string, message: string) {
    super(`S3 responded with ${status} ${code}${message && `: ${message}`}`);
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
/** A server that does not support Expect does not respond, and gets the body anyway. */
const CONTINUE_MS = 1000;
/** Timeout of the response header. */
const ANSWER_MS = 120_000;
/** How long nothing of an object may arrive. Its reader may pause for any time. */
const STALL_MS = 30_000;
/** For an answer in all; S3 sends spaces while it completes an upload or copies an object, which takes minutes. */
const SLOW_MS = 600_000;
/** A page of a list has a thousand keys of up to 1,024 bytes, each of which may be encoded as three. */
const XML_BYTES = 8 * 2 ** 20;
const PASSING_STATUS = [408, 429, 500, 502, 503, 504];
const PASSING_CODES = ["RequestTimeout", "SlowDown", "InternalError", "ServiceUnavailable", "OperationAborted"];

export type S3Client = ReturnType<typeof s3Client>;

/** Signed requests to one bucket, over kept-alive connections. */
export function s3Client(options: S3Options) {
  const { sign, presign } = signer(options);
  const inside = endpointOf(options, options.endpoint);
  const outside = endpointOf(options, options.publicUrl ?? options.endpoint);
  const isTls = inside.protocol === "https:";
  const agent = new (isTls ? HttpsAgent : HttpAgent)({ keepAlive: true, maxFreeSockets: 32, scheduling: "lifo" });
  const dial = isTls ? httpsRequest : httpRequest;
  const { backoffMs = BACKOFF_MS, stallMs = STALL_MS } = options;
  const quick = { maxBytes: XML_BYTES, stallMs, maxMs: 2 * stallMs };
  const slow = { maxBytes: XML_BYTES, stallMs: ANSWER_MS, maxMs: SLOW_MS };
  const wholeText = (response: IncomingMessage, { method }: S3Request) =>
    readText(response, method === "PUT" || method === "POST" ? slow : quick).catch((error) => {
      throw error instanceof TooLong ? unavailable(options, error) : error;
    });
  const pathOf = (base: string, key?: string) =>
    key === undefined
      ? base || "/"
      : `${base}/${pathSegments(options.prefix + key)
          .map(encoded)
          .join("/")}`;

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
    // RFC 9110, 10.1.1: a refusal arrives before the body is sent, instead of on a connection that breaks during the
    // transfer.
    if (isStream) headers.expect = "100-continue";
    const search = canonicalQuery(query);
    const target = search ? `${path}?${search}` : path;
    const outgoing = dial(inside.origin, {
      method,
      // The peer may be closing a kept-alive connection, and a stream cannot be sent again.
      agent: isStream ? false : agent,
      headers,
      path: target,
      ...(signal && { signal }),
    });
    // The connection may also fail after the response has begun, which fails the response.
    outgoing.on("error", () => {});
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

  /**
   * The response when it is 2xx. Throws S3Error, StorageFull, StorageUnavailable, the reason of `signal`, or the body's
   * error.
   */
  async function send(request: S3Request): Promise<IncomingMessage> {
    const isStream = request.body !== undefined && "stream" in request.body;
    for (let attempt = 1; ; attempt++) {
      let failure: unknown;
      try {
        const response = await exchange(request);
        if (response.statusCode && response.statusCode < 300) return response;
        failure = refusal(
          response.statusCode ?? 0,
          request.method === "HEAD" ? drained(response) : await wholeText(response, request),
        );
      } catch (error) {
        request.signal?.throwIfAborted();
        if (error instanceof BodyFailed) throw error.cause;
        failure = error;
      }
      if (!isPassing(failure)) throw failure;
      if (isStream || attempt === TRIES) throw unavailable(options, failure);
      const most = Math.min(MAX_BACKOFF_MS, backoffMs * 2 ** (attempt - 1));
      // With jitter, so that requests that were refused together are not retried together.
      await sleep(Math.random() * most, undefined, request.signal ? { signal: request.signal } : {});
    }
  }

  /** The response and its text. Some calls report their failure in a body after 200. */
  async function askOnce(request: S3Request) {
    const response = await send(request);
    const { headers, statusCode = 200 } = response;
    const xml = await wholeText(response, request);
    if (/<Error>/.test(xml)) throw refusal(statusCode, xml);
    return { headers, xml };
  }

  return {
    bucket: options.bucket,
    prefix: options.prefix,
    /** The response, whose body is the caller's to read. It fails with StorageUnavailable when S3 stops sending it. */
    async open(request: S3Request): Promise<IncomingMessage> {
      const response = await send(request);
      failWhenStalled(response, stallMs, () => unavailable(options, new TimedOut("it stopped sending an object.")));
      return response;
    },
    /** The whole response, for small ones. Throws as `send` does, and StorageUnavailable when it does not arrive. */
    async ask(request: S3Request): Promise<{ headers: IncomingMessage["headers"]; xml: string }> {
      const isStream = request.body !== undefined && "stream" in request.body;
      for (let attempt = 1; ; attempt++) {
        try {
          return await askOnce(request);
        } catch (error) {
          request.signal?.throwIfAborted();
          if (!isPassing(error)) throw error;
          if (isStream || attempt === TRIES) throw error instanceof S3Error ? error : unavailable(options, error);
        }
        await sleep(backoffMs * attempt);
      }
    },
    /** A presigned URL, and its expiry: a week at most. */
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

/** Aborts a request that finds no server, or gets no response. */
function deadline(outgoing: ClientRequest) {
  const stop = () => outgoing.destroy(new TimedOut("S3 did not respond in time."));
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

/** The body failed, not the connection to S3. */
class BodyFailed extends Error {}

type Sending = { answered: Promise<unknown>; signal: AbortSignal | undefined; onSent: () => void };

/**
 * Not with a pipeline, which would destroy the body after a failure, and with it the socket that the response is sent
 * on.
 */
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
        // Before the end of the body it can only be a refusal.
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

/** The bucket's own URL: in its path, keys follow. */
function endpointOf({ bucket, pathStyle, endpoint }: S3Options, address: string) {
  const url = new URL(address);
  const base = withoutTrailing(url.pathname, "/");
  // A separate public URL is the bucket's own when the bucket is in the host name.
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
  // Network errors have a code: ECONNRESET, ECONNREFUSED, ETIMEDOUT, EAI_AGAIN …
  return typeof (error as NodeJS.ErrnoException).code === "string" && (error as Error).name !== "AbortError";
}

const unavailable = ({ endpoint }: S3Options, cause: unknown) =>
  new StorageUnavailable(`The S3 server ${endpoint} is not responding: ${(cause as Error).message}`, { cause });

function drained(response: IncomingMessage): string {
  response.resume();
  return "";
}

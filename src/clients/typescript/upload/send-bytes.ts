import { withTimeout } from "../attempts.ts";

export type BytesRequest = {
  method: "PATCH" | "PUT";
  url: string;
  headers: Record<string, string>;
  body: Blob | Uint8Array<ArrayBuffer>;
  signal?: AbortSignal | undefined;
  fetch?: typeof fetch | undefined;
  /** `error` where another host would receive credentials. A 308 without Location is no redirect, and is returned. */
  redirect: "error" | "follow";
  /** Bytes of the body that were sent, where the environment reports them. */
  onSent(bytes: number): void;
};
export type BytesResponse = { status: number; header(name: string): string | null; text: string };

/** Without progress for this time a connection is broken. fetch reports none, so there it is the time of a whole chunk. */
const STALLED_MS = { xhr: 60_000, fetch: 120_000 };
/** The longest body at a speed at which the connection does not stall. */
const LONGEST_MS = 24 * 3_600_000;
/** As large as a chunk may be; a longer body is a whole file. */
const MAX_CHUNK_BYTES = 2 ** 24;

/** Sends the bytes of a file. Returns any response; throws VodboxError when there is none. */
export const sendBytes = (request: BytesRequest): Promise<BytesResponse> =>
  // Only XMLHttpRequest reports the progress of a request body.
  typeof XMLHttpRequest === "undefined" ? byFetch(request) : byXhr(request);

function byFetch({ url, onSent: _, signal, fetch: send = fetch, ...init }: BytesRequest): Promise<BytesResponse> {
  const bytes = init.body instanceof Blob ? init.body.size : init.body.length;
  return withTimeout(
    async (either) => {
      const response = await send(url, { ...init, signal: either });
      const { status, headers } = response;
      return { status, header: (name) => headers.get(name), text: await response.text() };
    },
    { signal, timeoutMs: bytes > MAX_CHUNK_BYTES ? LONGEST_MS : STALLED_MS.fetch },
  );
}

function byXhr({ method, url, headers, body, signal, onSent }: BytesRequest): Promise<BytesResponse> {
  const send = (either: AbortSignal, moved: () => void) =>
    new Promise<BytesResponse>((resolve, reject) => {
      const request = new XMLHttpRequest();
      request.open(method, url);
      for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value);
      request.upload.onprogress = ({ loaded }) => {
        moved();
        onSent(loaded);
      };
      request.onerror = () => reject(new TypeError("Network error"));
      request.onload = () => {
        const { status, responseText: text } = request;
        resolve({ status, header: (name) => request.getResponseHeader(name), text });
      };
      request.onabort = () => reject(either.reason);
      either.addEventListener("abort", () => request.abort(), { once: true });
      request.send(body);
    });
  return withStallTimeout(send, signal);
}

/** As `withTimeout`, but the time begins again whenever bytes were sent. */
function withStallTimeout<T>(
  work: (signal: AbortSignal, moved: () => void) => Promise<T>,
  signal?: AbortSignal,
): Promise<T> {
  const stalled = new AbortController();
  let timer: ReturnType<typeof setTimeout>;
  const moved = () => {
    clearTimeout(timer);
    timer = setTimeout(() => stalled.abort(), STALLED_MS.xhr);
  };
  return withTimeout(
    (either) => {
      moved();
      either.addEventListener("abort", () => stalled.abort(either.reason), { once: true });
      return work(stalled.signal, moved);
    },
    { signal, timeoutMs: LONGEST_MS },
  ).finally(() => clearTimeout(timer));
}

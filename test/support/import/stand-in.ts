import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { atEnd } from "../folder.ts";
import { CAPTION, LIBRARY, PAGE, type StandInVideo } from "./library.ts";

export type Asked = { method: string; path: string; query: URLSearchParams; body: string; page: number };
/** What a provider's API answers: JSON; a text, as it is; null for 404; undefined for 401; MEDIA for a file as of the other origin. */
export const MEDIA = Symbol("media");
export type Answer = Buffer | object | string | null | undefined | typeof MEDIA;
/** `pageSize`: how many videos a page of the list has. */
export type Library = { videos: readonly StandInVideo[]; pageSize: number };
export type Context = Library & {
  /** URL of the API. */
  api: string;
  /** URL of media, on another origin. */
  cdn: string;
  /** A URL of a file, which differs each time. */
  linkOf(video: StandInVideo): string;
  /** The video whose id is in a path. */
  videoIn(path: string): StandInVideo | undefined;
};
export type Routes = (asked: Asked, context: Context) => Answer;

export type StandIn = Context & {
  /** Sends half of the slow file, and no more; resolves when it does. */
  hold(): Promise<void>;
  release(): void;
  /** Headers of requests for media. */
  seen: { path: string; headers: IncomingMessage["headers"] }[];
  /** The first responses of the API: status and headers instead of what was asked for. */
  faults: { status: number; headers?: Record<string, string>; body?: string }[];
};

const listen = async (handle: (request: IncomingMessage, response: ServerResponse) => void) => {
  const server = createServer(handle);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  atEnd(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
};

/**
 * A stand-in for a provider, on loopback: an API by its public documentation, by default with the library of the tests, and
 * media on another origin. `isAllowed` checks the credentials.
 */
export async function startStandIn(
  routes: Routes,
  isAllowed: (headers: IncomingMessage["headers"]) => boolean = () => true,
  { videos, pageSize }: Library = { videos: LIBRARY, pageSize: PAGE },
): Promise<StandIn> {
  const byId = new Map(videos.map((video) => [video.id, video]));
  const videoIn = (path: string) => byId.get(/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/.exec(path)?.[0] ?? "");
  const links = new Map<string, number>();
  let held: (() => void) | null = null;
  const seen: StandIn["seen"] = [];
  const sendMedia = (request: IncomingMessage, response: ServerResponse) => {
    const url = new URL(request.url ?? "/", "http://x");
    seen.push({ path: url.pathname, headers: request.headers });
    const video = videoIn(url.pathname);
    if (/\.vtt$/.test(url.pathname)) return void response.end(CAPTION);
    if (!video || video.file === "missing" || /\.(jpg|png)$/.test(url.pathname))
      return void response.writeHead(404).end();
    const isFirst = (url.searchParams.get("n") ?? "1") === "1" && links.get(`${video.id} used`) === undefined;
    links.set(`${video.id} used`, 1);
    if (video.file === "expired" && isFirst) return void response.writeHead(403).end();
    sendFile(request, response, video);
  };
  const cdn = await listen(sendMedia);
  function sendFile(request: IncomingMessage, response: ServerResponse, { content, file }: StandInVideo): void {
    const [, from = "0"] = /^bytes=(\d+)-$/.exec(request.headers.range ?? "") ?? [];
    const start = request.headers["if-range"] === '"v1"' ? Number(from) : 0;
    const size = content.length;
    response.writeHead(start > 0 ? 206 : 200, {
      "content-type": "video/mp4",
      etag: '"v1"',
      "content-length": size - start,
      ...(start > 0 && { "content-range": `bytes ${start}-${size - 1}/${size}` }),
    });
    if (request.method === "HEAD") return void response.end();
    if (file !== "slow" || held === null) return void response.end(content.subarray(start));
    response.write(content.subarray(start, size / 2), () => held?.());
  }
  const context: Context = {
    api: "",
    cdn,
    videos,
    pageSize,
    videoIn,
    linkOf(video) {
      links.set(video.id, (links.get(video.id) ?? 0) + 1);
      return `${cdn}/files/${video.id}?n=${links.get(video.id)}`;
    },
  };
  const faults: StandIn["faults"] = [];
  const api = await listen(async (request, response) => {
    const url = new URL(request.url ?? "/", "http://x");
    const body = await text(request);
    if (!isAllowed(request.headers) && !/oauth|token$/.test(url.pathname)) return void response.writeHead(401).end();
    const fault = faults.shift();
    if (fault) return void response.writeHead(fault.status, fault.headers).end(fault.body);
    const page = Number(url.searchParams.get("page") ?? 1);
    const path = decodeURIComponent(url.pathname);
    const answer = routes({ method: request.method ?? "GET", path, query: url.searchParams, body, page }, context);
    if (answer === MEDIA) return sendMedia(request, response);
    if (answer === undefined) return void response.writeHead(401).end("{}");
    if (answer === null) return void response.writeHead(404, { "content-type": "application/json" }).end("{}");
    if (typeof answer === "string" || Buffer.isBuffer(answer)) return void response.end(answer);
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(answer));
  });
  context.api = api;
  return Object.assign(context, {
    seen,
    faults,
    hold: () =>
      new Promise<void>((resolve) => {
        held = resolve;
      }),
    release() {
      held = null;
    },
  });
}

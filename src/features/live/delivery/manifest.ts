import { FastResponse } from "srvx";
import type { LiveMpd } from "#lib/manifests";
import { LIVE_MANIFEST } from "#live/playlists/names.ts";
import { contentTypeOf } from "#model/media-types.ts";
import { encodedText } from "#platform/http/content-encoding.ts";
import type { LiveStream } from "../registry.ts";
import { countViewer, freshSeconds, type ViewerRequest, whileConnected } from "./viewer-request.ts";

type Manifested = Pick<LiveStream, "name" | "timeline" | "viewers">;

/**
 * The DASH manifest of a stream, in the folder of its tracks. The request counts as one of a viewer. Throws what the
 * timeline throws, 499 when the client disconnects.
 */
export async function serveManifest(request: ViewerRequest, stream: Manifested): Promise<Response> {
  const manifest = await manifestOf(request, stream);
  return encodedText(request.context, {
    text: async () => manifest.text(),
    headers: headersOf(`${request.scope}, max-age=${freshSeconds(stream)}`),
    sameFor: manifest,
    onSent: request.onSent,
  });
}

/**
 * The same at the URL of the channel. `folder` has the streams, as a path from the root of the host. Players read the
 * updates at the URL of the stream, also the one in which it ends; the next stream has another. It is no redirect,
 * because ffmpeg 5.1 resolves references against the URL that it requested.
 */
export async function serveManifestOfChannel(
  request: ViewerRequest,
  stream: Manifested,
  folder: string,
): Promise<Response> {
  const manifest = await manifestOf(request, stream);
  const base = `${folder}${stream.name}/`;
  const rendered = manifest.at({ base, location: base + LIVE_MANIFEST });
  return encodedText(request.context, {
    text: async () => rendered.text,
    sameFor: rendered,
    // The next stream has other URLs.
    headers: headersOf(`${request.scope}, no-cache`),
    onSent: request.onSent,
  });
}

function manifestOf(request: ViewerRequest, stream: Manifested): Promise<LiveMpd> {
  countViewer(request, stream);
  return whileConnected(request, (signal) => stream.timeline.waitForManifest(signal));
}

const headersOf = (cacheControl: string): Record<string, string> => ({
  "cache-control": cacheControl,
  "content-type": contentTypeOf(LIVE_MANIFEST),
  "x-content-type-options": "nosniff",
});

/** The time of day of this server (ISO/IEC 23009-1, 5.8.4.11: http-xsdate), by which players know what is available. */
export function serveTime({ context, onSent }: ViewerRequest): Response {
  const text = new Date(context.app.clock.now()).toISOString();
  const headers = {
    "cache-control": "no-store",
    "content-length": String(text.length),
    "content-type": "text/plain; charset=utf-8",
    "x-content-type-options": "nosniff",
  };
  if (context.method === "HEAD") return new FastResponse(null, { headers });
  onSent(text.length);
  return new FastResponse(text, { headers });
}

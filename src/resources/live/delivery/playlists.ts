import { encodedText } from "../../../http/content-encoding.ts";
import { contentTypeOf } from "../../../lib/media-types.ts";
import { readDirectives } from "../../../live/playlists/directives.ts";
import type { LiveStream } from "../registry.ts";
import { countViewer, freshSeconds, type ViewerRequest, whileConnected } from "./viewer-request.ts";

/**
 * In target durations: how long caches may keep the response to a blocking request. Apple recommends six: each is for one
 * state of the playlist, and no player repeats it.
 */
const BLOCKING_FRESH = 6;

/**
 * `prefix`: from the URL of the request to the folder of the broadcast. The request counts as one of a viewer. Throws what the
 * timeline throws.
 */
export async function serveMultivariantPlaylist(
  request: ViewerRequest,
  stream: Pick<LiveStream, "timeline" | "viewers">,
  prefix: string,
): Promise<Response> {
  const { context, scope, onSent } = request;
  const { timeline } = stream;
  countViewer(request, stream);
  const { text } = await whileConnected(request, (signal) => timeline.waitForMultivariantPlaylist(signal, prefix));
  // The next broadcast has other URLs.
  return encodedText(context, { text: async () => text, headers: headersOf(`${scope}, no-cache`), onSent });
}

/**
 * The playlist of a track; waits for what the directives of the query ask for. The request counts as one of a viewer.
 * Throws what the timeline throws, 499 when the client disconnects.
 */
export async function serveMediaPlaylist(
  request: ViewerRequest,
  stream: Pick<LiveStream, "timeline" | "viewers">,
  track: string,
): Promise<Response> {
  const { context, scope, onSent } = request;
  const { timeline } = stream;
  const directives = readDirectives(context.url.searchParams);
  countViewer(request, stream);
  const playlist = await whileConnected(request, (signal) => timeline.waitForPlaylist(track, directives, signal));
  const isAnswer = timeline.hasAnswer(track, directives);
  const seconds = isAnswer ? freshSeconds(stream, BLOCKING_FRESH) : freshSeconds(stream);
  // While the publisher is disconnected a blocking request ends without what it asked for, and is repeated.
  const isEarly = directives.msn !== null && !isAnswer;
  return encodedText(context, {
    text: async () => playlist.text(),
    headers: headersOf(`${scope}, ${isEarly ? "no-cache" : `max-age=${seconds}`}`),
    sameFor: playlist,
    onSent,
  });
}

const headersOf = (cacheControl: string): Record<string, string> => ({
  "cache-control": cacheControl,
  "content-type": contentTypeOf(".m3u8"),
  "x-content-type-options": "nosniff",
});

import { selectionOf } from "#features/playback/manifest-parameters.ts";
import { notFound } from "#lib/base";
import { masterOfSelection } from "#lib/manifests";
import { readDirectives } from "#live/playlists/directives.ts";
import { contentTypeOf } from "#model/media-types.ts";
import { encodedText } from "#platform/http/content-encoding.ts";
import type { LiveStream } from "../registry.ts";
import { countViewer, freshSeconds, type ViewerRequest, whileConnected } from "./viewer-request.ts";

/**
 * In target durations: how long caches may keep the response to a blocking request. Apple recommends six: each is for one
 * state of the playlist, and no player repeats it.
 */
const BLOCKING_FRESH = 6;

/**
 * `prefix`: from the URL of the request to the folder of the stream. The query may select resolutions and their order.
 * The request counts as one of a viewer. Throws what the timeline throws, and 422 for an invalid parameter.
 */
export async function serveMultivariantPlaylist(
  request: ViewerRequest,
  stream: Pick<LiveStream, "timeline" | "viewers">,
  prefix: string,
): Promise<Response> {
  const { context, scope, onSent } = request;
  const { timeline } = stream;
  const selection = selectionOf(context.url.searchParams);
  countViewer(request, stream);
  const playlist = await whileConnected(request, (signal) => timeline.waitForMultivariantPlaylist(signal, prefix));
  const text = masterOfSelection(playlist.text, selection);
  // The next stream has other URLs.
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

/** The playlist of captions; waits as that of the video does. Throws as `serveMediaPlaylist`. */
export async function serveCaptionPlaylist(
  request: ViewerRequest,
  stream: Pick<LiveStream, "timeline" | "captions" | "viewers">,
): Promise<Response> {
  const { context, scope, onSent } = request;
  const { timeline, captions } = stream;
  const track = timeline.captioned ?? notFound("track");
  const directives = { ...readDirectives(context.url.searchParams), part: null, skip: false };
  countViewer(request, stream);
  await whileConnected(request, (signal) => timeline.waitForPlaylist(track.init.track, directives, signal));
  const { targetSeconds, isEnded } = timeline.facts();
  const playlist = captions.playlist(track, { targetSeconds: targetSeconds ?? 0, isEnded });
  return encodedText(context, {
    text: async () => playlist.text(),
    headers: headersOf(`${scope}, max-age=${freshSeconds(stream)}`),
    sameFor: playlist,
    onSent,
  });
}

/** What captions show in a segment of the video. Throws 404 unless a playlist lists it, or did until recently. */
export async function serveCaptions(
  { context, scope, onSent }: ViewerRequest,
  { timeline, captions }: Pick<LiveStream, "timeline" | "captions">,
  service: string,
  number: number,
): Promise<Response> {
  const segment = timeline.captioned?.segment(number) ?? notFound("segment");
  return encodedText(context, {
    text: async () => captions.segment(service, segment),
    headers: { ...headersOf(`${scope}, max-age=31536000, immutable`), "content-type": contentTypeOf(".vtt") },
    onSent,
  });
}

const headersOf = (cacheControl: string): Record<string, string> => ({
  "cache-control": cacheControl,
  "content-type": contentTypeOf(".m3u8"),
  "x-content-type-options": "nosniff",
});

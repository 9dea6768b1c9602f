import { and, eq, isNull } from "drizzle-orm";
import type { App } from "#app.ts";
import { cmcdSessions } from "#features/analytics/cmcd/sessions.ts";
import { channelSubject } from "#features/analytics/subject.ts";
import { basePath } from "#features/assets/urls.ts";
import { IMAGE_AUDIENCES } from "#features/playback/audience.ts";
import type { Egress } from "#features/playback/egress.ts";
import { parseStillShape } from "#features/playback/images/image-request.ts";
import { type PlaybackTokens, requireToken, splitToken } from "#features/playback/token.ts";
import { requireActiveTenant } from "#features/tenants/active.ts";
import { HttpError, notFound } from "#lib/base";
import { LIVE_MANIFEST, LIVE_TIME, readCaptionName, readPartName, readSegmentName } from "#live/playlists/names.ts";
import { INIT_NAME } from "#media/arguments.ts";
import { MEDIA_CORS } from "#platform/http/cors.ts";
import { type Context, type Route, route } from "#platform/http/route.ts";
import { liveChannels } from "#storage/db/schema.ts";
import { type CachedChannel, channelCache } from "../channel-cache.ts";
import { type LiveStream, liveRegistry } from "../registry.ts";
import { pathOf } from "../schema.ts";
import { type StoredStream, storedStreams } from "../shared/stored-streams.ts";
import { LIVE_MASTER } from "../urls.ts";
import { serveInit, servePart, serveSegment, serveStored } from "./files.ts";
import { serveManifest, serveManifestOfChannel, serveTime } from "./manifest.ts";
import { serveCaptionPlaylist, serveCaptions, serveMediaPlaylist, serveMultivariantPlaylist } from "./playlists.ts";
import { servePoster } from "./poster.ts";
import type { ViewerRequest } from "./viewer-request.ts";

/**
 * `/live/<channel>/[~<token>/]<file>`. The file is `master.m3u8`, `manifest.mpd` or `thumbnail.jpg`, of the running stream;
 * `<stream>/<track>/<name>`: a media playlist, the init segment, a segment or a part; or `<stream>/manifest.mpd` with
 * `<stream>/time`. URLs with a stream are never used again.
 */
export const liveDeliveryRoutes = (tokens: PlaybackTokens, egress: Egress): Route[] => [
  route({
    method: "GET",
    path: "/live/:channel/**:file",
    credential: "none",
    // Players must see the status of an error to know whether to retry.
    cors: MEDIA_CORS,
    tag: "Media",
    summary: "Get a playlist, the DASH manifest, a segment or a part of a live channel",
    hidden: true,
    responses: { 200: null },
    handle: (context) => deliver(context, tokens, egress),
  }),
];

async function deliver(context: Context, tokens: PlaybackTokens, egress: Egress): Promise<Response> {
  const { app, url } = context;
  const { channel = "", file: path = "" } = context.params as { channel?: string; file?: string };
  const { token, file } = splitToken(path, url.searchParams);
  const { id, tenantId, playbackPolicy } = await requireCached(app, channel);
  const isSigned = playbackPolicy === "signed";
  const audiences = /^thumbnail\./.test(file) ? IMAGE_AUDIENCES : undefined;
  if (isSigned)
    await requireToken(tokens.of(context.headers), { tenantId, externalId: pathOf(channel) }, token, audiences);
  cmcdSessions(app).observe(context, channelSubject({ id, tenantId }));
  const request: ViewerRequest = {
    context,
    scope: isSigned ? "private" : "public",
    token: token ?? "",
    onSent: (bytes) => egress.add(tenantId, bytes),
  };
  if (file === LIVE_MASTER || file === LIVE_MANIFEST) {
    const stream = await requireRunning(app, { id, channel });
    const signed = isSigned ? `~${token}/` : "";
    const folder = `${basePath(app.baseUrl())}/${pathOf(channel)}/${signed}`;
    if (file === LIVE_MANIFEST) return serveManifestOfChannel(request, stream, folder);
    // A player loses the query at the relative URIs of the playlist.
    const carried = url.searchParams.has("token") ? signed : "";
    return serveMultivariantPlaylist(request, stream, `${carried}${stream.name}/`);
  }
  const shape = parseStillShape(file, url.searchParams);
  if (shape) return servePoster(request, await requireRunning(app, { id, channel }), shape);
  const [name = "", track = "", leaf = "", ...rest] = file.split("/");
  const stream = liveRegistry(app).byName(name) ?? (await storedStreams(app).byName(id, name));
  if (stream?.channelId !== id) return notFound("file");
  if (file === `${name}/${LIVE_MANIFEST}`) return serveManifest(request, stream);
  if (file === `${name}/${LIVE_TIME}`) return serveTime(request);
  if (stream.captions.has(track) && rest.length === 0) {
    if (leaf === stream.timeline.playlistName) return serveCaptionPlaylist(request, stream);
    return serveCaptions(request, stream, track, readCaptionName(leaf) ?? notFound("file"));
  }
  if (!stream.timeline.hasTrack(track) || rest.length > 0) return notFound("file");
  return serveFile(request, stream, { track, leaf });
}

function serveFile(
  request: ViewerRequest,
  stream: LiveStream | StoredStream,
  { track, leaf }: { track: string; leaf: string },
): Promise<Response> {
  if (leaf === stream.timeline.playlistName) return serveMediaPlaylist(request, stream, track);
  if ("prefix" in stream) {
    const segment = leaf === INIT_NAME ? null : (readSegmentName(leaf) ?? notFound("file"));
    return serveStored(request, stream, track, segment);
  }
  if (leaf === INIT_NAME) return serveInit(request, stream, track);
  const part = readPartName(leaf);
  if (part) return servePart(request, stream, track, part);
  const segment = readSegmentName(leaf);
  return segment === null ? notFound("file") : serveSegment(request, stream, track, segment);
}

/** The running stream, which this server or another one receives. Throws 404 `channel_idle`. */
async function requireRunning(
  app: App,
  { id, channel }: { id: number; channel: string },
): Promise<LiveStream | StoredStream> {
  const received = liveRegistry(app).running(channel);
  const stream = received?.channelId === id ? received : await storedStreams(app).ofChannel(id);
  if (!stream) throw new HttpError(404, "channel_idle", "The channel is not live; try again later.");
  return stream;
}

/** From memory. Throws 404, and 403 `tenant_suspended`. */
async function requireCached(app: App, channel: string): Promise<CachedChannel> {
  const cached = await channelCache(app).find(channel);
  if (cached) {
    // The cache may be a second older where other servers write.
    await requireActiveTenant(app, cached.tenantId);
    return cached;
  }
  const isNamed = and(eq(liveChannels.channel, channel), isNull(liveChannels.revokedAt));
  const row = await app.db.select({ tenantId: liveChannels.tenantId }).from(liveChannels).where(isNamed).get();
  if (row) await requireActiveTenant(app, row.tenantId);
  return notFound("channel");
}

import type { App } from "#app.ts";
import { notFound } from "#lib/base";
import type { Context } from "#platform/http/route.ts";
import type { AssetRow } from "#storage/db/schema.ts";
import { findPublicAsset } from "../assets/queries.ts";
import { countPlay } from "../shares/plays.ts";
import { requireActiveTenant } from "../tenants/active.ts";
import { audiencesOf } from "./audience.ts";
import type { Egress } from "./egress.ts";
import { isSubtitle, mediaFiles } from "./media-files.ts";
import { type PlaybackTokens, requireAccess, splitToken } from "./token.ts";

/**
 * `root`: a request with another URL than `/media/…`, from which the references of a manifest must lead to the server's root: a
 * prefix such as `../../` or `https://stream.example.com/`.
 */
export type MediaHandler = (context: Context, options?: { root?: string | null }) => Promise<Response>;

/** What a player says about its playback with a request for media. */
export type OnMedia = (context: Pick<Context, "url" | "headers" | "method" | "address">, asset: AssetRow) => void;

/**
 * `/media/<asset>/[~<token>/]<file>`. The file is one of the fixed names `master.m3u8`, `manifest.mpd`,
 * `storyboard.vtt` (or `.json`), `thumbnail.jpg` and `video.mp4`, which always resolve to the published version; an
 * image that is generated on request; `subtitles/<id>.vtt`, its text and its playlist; `static/<name>.mp4`, a static rendition; or
 * `<version>/<path>`, which never changes.
 */
export function createMediaHandler(
  app: App,
  { tokens, egress, onMedia }: { tokens: PlaybackTokens; egress: Egress; onMedia: OnMedia },
): MediaHandler {
  const serve = mediaFiles(app, egress);

  return async (context, { root = null } = {}) => {
    const { id: ref = "", file: path = "" } = context.params as { id?: string; file?: string };
    const { token, file } = splitToken(path, context.url.searchParams);
    const asset = (await findPublicAsset(app, ref)) ?? notFound("asset");
    // Before the token check: the signing keys of a suspended tenant are disabled, and the error would be misleading.
    await requireActiveTenant(app, asset.tenantId);
    const audiences = audiencesOf(asset, file);
    const share = await requireAccess(tokens.of(context.headers), asset, token, audiences);
    if (asset.playbackStatus === "ready") onMedia(context, asset);
    if (!share) return serve(context, { asset, file, token, isShare: false, root });
    const isImage = audiences.length > 1;
    // Previews and subtitles are no plays: a page loads them before the viewer begins.
    const isPlay = context.method === "GET" && asset.playbackStatus === "ready" && !isImage && !isSubtitle(file);
    if (isPlay) await countPlay(context, share);
    const response = await serve(context, { asset, file, token, isShare: true, root });
    // What is immutable must still be asked for again: the share may have ended.
    response.headers.set("cache-control", "private, no-cache");
    return response;
  };
}

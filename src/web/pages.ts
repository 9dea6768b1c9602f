import { basename } from "node:path";
import { create } from "content-disposition";
import * as v from "valibot";
import type { App } from "#app.ts";
import { findPublicAsset } from "#features/assets/queries.ts";
import { basePath } from "#features/assets/urls.ts";
import type { Egress } from "#features/playback/egress.ts";
import { PlayerData, playerData, requirePlayable } from "#features/playback/player-data.ts";
import type { PlaybackTokens } from "#features/playback/token.ts";
import { downloadNotAllowed, viewerDownload } from "#features/playback/viewer-download.ts";
import { serveMp4 } from "#features/static-renditions/mp4.ts";
import { isActiveTenant } from "#features/tenants/active.ts";
import { allowedOriginsOf } from "#features/tenants/queries.ts";
import { HttpError } from "#lib/base";
import { encodedText } from "#platform/http/content-encoding.ts";
import { type Context, Reply, type Route, route } from "#platform/http/route.ts";
import { storageOf } from "#platform/http/storage.ts";
import type { AssetRow } from "#storage/db/schema.ts";
import { assetView, stateNotice, suspended, videoNotFound } from "./asset-view.ts";
import { embeddedFile, versionOf } from "./embedded-file.ts";
import { html } from "./html.ts";
import { oembedRoute } from "./oembed.ts";
import { type PageName, respond, type View } from "./page.ts";
import { message, type Notice, PLAYER_SCRIPT, PLAYLIST_SCRIPT, TRANSCRIPT_SCRIPT } from "./player-page.ts";
import { carriedToken, sharingHead } from "./sharing.ts";
import { watchData } from "./structured-data.ts";

const open = { method: "GET", credential: "none", tag: "Pages", hidden: true } as const;

/** `/watch/<asset>`, `/embed/<asset>`, the player that they load and its requests; nothing is loaded from elsewhere. */
export const pageRoutes = (tokens: PlaybackTokens, egress: Egress): Route[] => [
  ...(["watch", "embed"] as const).map((page) =>
    route({
      ...open,
      path: `/${page}/:id`,
      summary: `Show the ${page} page of an asset`,
      responses: { 200: null },
      handle: async (context) => respond(page, await viewOf(context, tokens.of(context.headers), page)),
    }),
  ),
  route({
    ...open,
    path: "/embed/:id/player.json",
    summary: "Get the data that the player needs for an asset",
    params: v.object({ id: v.string() }),
    // The element is embedded in pages of other sites.
    cors: { allowHeaders: "", exposeHeaders: "" },
    responses: { 200: PlayerData },
    errors: {
      403: ["playback_token_required", "playback_token_invalid", "tenant_suspended"],
      422: ["asset_not_ready", "asset_errored"],
    },
    async handle(context) {
      const { app, params, url } = context;
      const token = url.searchParams.get("token");
      const playable = await requirePlayable(app, tokens.of(context.headers), { ref: params.id, token });
      const data = await playerData(context, playable, basePath(app.baseUrl()));
      return encodedText(context, {
        text: async () => JSON.stringify(data),
        headers: {
          "cache-control": "no-store",
          "content-type": "application/json; charset=utf-8",
          "x-content-type-options": "nosniff",
        },
      });
    },
  }),
  route({
    ...open,
    path: "/embed/:id/download",
    summary: "Download a video, where the tenant allows it",
    params: v.object({ id: v.string() }),
    responses: { 200: null, 302: null },
    errors: {
      403: ["playback_token_required", "playback_token_invalid", "tenant_suspended", "download_not_allowed"],
    },
    async handle({ app, params, url, headers, method }) {
      const token = url.searchParams.get("token");
      const { asset, share } = await requirePlayable(app, tokens.of(headers), { ref: params.id, token });
      // A share decides on downloads itself, and has a URL for them.
      if (share) throw downloadNotAllowed();
      const file = await viewerDownload(app, asset);
      if ("asset" in file)
        return serveMp4(app, {
          objects: storageOf(app),
          asset: file.asset,
          method,
          headers,
          cacheControl: "private, no-store",
          extraHeaders: { "content-disposition": create(file.filename) },
          onSent: (bytes) => egress.add(asset.tenantId, bytes),
        });
      egress.add(asset.tenantId, file.bytes);
      return new Reply(302, undefined, { location: file.url, "cache-control": "no-store" });
    },
  }),
  oembedRoute(tokens),
  scriptRoute(PLAYER_SCRIPT, "Get the player script"),
  scriptRoute(PLAYLIST_SCRIPT, "Get the script of playlists"),
  scriptRoute(TRANSCRIPT_SCRIPT, "Get the script that the player loads to show what is said"),
];

/** A script that other sites load too. A URL with its version never changes; without one it must be revalidated. */
function scriptRoute(file: string, summary: string): Route {
  return route({
    ...open,
    path: `/${basename(file)}`,
    summary,
    responses: { 200: null },
    async handle(context) {
      const isPinned = context.url.searchParams.get("v") === versionOf(file);
      const cacheControl = isPinned ? "public, max-age=31536000, immutable" : "public, no-cache";
      const type = "text/javascript; charset=utf-8";
      const script = await embeddedFile(context, file, { type, cacheControl });
      // For a module script, or one with integrity, other sites need CORS.
      script.headers.set("access-control-allow-origin", "*");
      script.headers.set("cross-origin-resource-policy", "cross-origin");
      return script;
    },
  });
}

async function viewOf({ app, params, url }: Context, tokens: PlaybackTokens, page: PageName): Promise<View> {
  const asset = await findPublicAsset(app, (params as { id: string }).id);
  const framedBy =
    page === "embed" && asset ? ["'self'", ...(await allowedOriginsOf(app, asset.tenantId))] : ["'self'"];
  const token = url.searchParams.get("token");
  const notice = asset ? await noticeFor(app, tokens, { asset, token }) : videoNotFound();
  if (notice || !asset) return { framedBy, ...(notice ?? videoNotFound()) };
  const playing = { token: carriedToken(asset, token), query: url.searchParams };
  const data = page === "watch" && watchData(app, asset);
  const head = html`${sharingHead(app, asset, token)}${data}`;
  return { framedBy, ...(await assetView(app, asset, page, playing)), head };
}

/** Works without a script, because there is nothing to play yet, or ever. */
async function noticeFor(
  app: App,
  tokens: PlaybackTokens,
  { asset, token }: { asset: AssetRow; token: string | null },
): Promise<Notice | null> {
  if (!(await isActiveTenant(app, asset.tenantId))) return suspended();
  if (asset.playbackPolicy === "signed") {
    if (!token) return message(403, "This video is private", "Open it with the complete link that you received.");
    try {
      await tokens.verify(asset, token);
    } catch (error) {
      if (!(error instanceof HttpError)) throw error;
      return message(403, "This link has expired", "Or it is incomplete. Request a new link from the sender.");
    }
  }
  return stateNotice(asset);
}

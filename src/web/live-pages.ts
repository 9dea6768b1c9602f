import * as v from "valibot";
import type { App } from "#app.ts";
import { basePath } from "#features/assets/urls.ts";
import { findPublicChannel, type PublicChannel, requireChannelToken } from "#features/live/live-state.ts";
import { livePageUrl } from "#features/live/urls.ts";
import type { PlaybackTokens } from "#features/playback/token.ts";
import { isActiveTenant } from "#features/tenants/active.ts";
import { allowedOriginsOf, rememberedPlayer } from "#features/tenants/queries.ts";
import { HttpError } from "#lib/base";
import { type Context, type Route, route } from "#platform/http/route.ts";
import { html, type Markup } from "./html.ts";
import { type PageName, respond, type View } from "./page.ts";
import {
  heading,
  message,
  type Notice,
  type PlayingOptions,
  playerFrame,
  playerOptions,
  scriptUrl,
  storageOrigin,
} from "./player-page.ts";
import { shareTags } from "./sharing.ts";

/** `/watch/live/<channel>` and `/embed/live/<channel>`: the player waits there for a stream that has not begun. */
export const livePageRoutes = (tokens: PlaybackTokens): Route[] =>
  (["watch", "embed"] as const).map((page) =>
    route({
      method: "GET",
      path: `/${page}/live/:channel`,
      credential: "none",
      tag: "Pages",
      hidden: true,
      summary: `Show the ${page} page of a channel`,
      responses: { 200: null },
      params: v.object({ channel: v.string() }),
      handle: async (context) => respond(page, await viewOf(context, tokens.of(context.headers), page)),
    }),
  );

async function viewOf({ app, params, url }: Context, tokens: PlaybackTokens, page: PageName): Promise<View> {
  const channel = await findPublicChannel(app, (params as { channel: string }).channel);
  if (!channel)
    return {
      ...message(404, "Channel not found", "The link may be mistyped, or the channel was removed."),
      framedBy: ["'self'"],
    };
  const framedBy = ["'self'", ...(page === "embed" ? await allowedOriginsOf(app, channel.tenantId) : [])];
  const token = url.searchParams.get("token");
  const notice = await noticeFor(app, tokens, { channel, token });
  if (notice) return { framedBy, ...notice };
  const carried = channel.playbackPolicy === "signed" ? token : null;
  return {
    status: 200,
    framedBy,
    title: channel.name,
    head: sharingHead(app, channel, carried),
    content: content(channel, page, {
      token: carried,
      look: await rememberedPlayer(app, channel.tenantId, basePath(app.baseUrl())),
      ...playerOptions(url.searchParams),
    }),
    script: scriptUrl(app),
    ...storageOrigin(app),
  };
}

async function noticeFor(
  app: App,
  tokens: PlaybackTokens,
  { channel, token }: { channel: PublicChannel; token: string | null },
): Promise<Notice | null> {
  if (!(await isActiveTenant(app, channel.tenantId)))
    return message(403, "This stream is not available", "The account that owns it is suspended.");
  try {
    await requireChannelToken(tokens, channel, token);
    return null;
  } catch (error) {
    if (!(error instanceof HttpError)) throw error;
    return token
      ? message(403, "This link has expired", "Or it is incomplete. Request a new link from the sender.")
      : message(403, "This stream is private", "Open it with the complete link that you received.");
  }
}

function sharingHead(app: App, { channel, name }: PublicChannel, token: string | null): Markup {
  const url = (page: PageName) => livePageUrl(app.baseUrl(), page, channel, token);
  return shareTags({ title: name, watch: url("watch"), embed: url("embed") });
}

function content({ channel, name }: PublicChannel, page: PageName, playing: PlayingOptions): Markup {
  const player = playerFrame(html` live="${channel}"`, page, name, playing);
  return page === "embed" ? html`<h1 class="heard">${name}</h1>${player}` : html`${player}${heading(name, playing)}`;
}

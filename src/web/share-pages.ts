import * as v from "valibot";
import type { App } from "#app.ts";
import { basePath, mediaUrl } from "#features/assets/urls.ts";
import type { Egress } from "#features/playback/egress.ts";
import { type PlaybackTokens, requireToken } from "#features/playback/token.ts";
import { tokenSeconds } from "#features/playback/token-lifetime.ts";
import { requireSharePassword } from "#features/shares/password.ts";
import { countPlay, stateOfPlay } from "#features/shares/plays.ts";
import { findShareByCode } from "#features/shares/queries.ts";
import { passwordMark } from "#features/shares/rules.ts";
import { sharePath } from "#features/shares/schema.ts";
import { newViewer, viewerCookies, viewerOf } from "#features/shares/viewer-cookie.ts";
import { serveMp4 } from "#features/static-renditions/mp4.ts";
import { allowedOriginsOf } from "#features/tenants/queries.ts";
import { HttpError, notFound } from "#lib/base";
import { readBytes, readJson } from "#platform/http/body.ts";
import { type Context, type Route, route } from "#platform/http/route.ts";
import { Name } from "#platform/http/schemas.ts";
import { serveObject } from "#platform/http/serve-object.ts";
import { storageOf } from "#platform/http/storage.ts";
import { validate } from "#platform/http/validate.ts";
import { assetView, stateNotice } from "./asset-view.ts";
import { requireOpenShare, type Shared } from "./open-share.ts";
import { type PageName, respond, type View } from "./page.ts";
import type { Notice } from "./player-page.ts";
import { downloadButton, downloadOf, passwordForm, refusedShare, shareHead } from "./share-view.ts";

const MAX_BODY_BYTES = 8192;
const Password = v.object({ password: Name(1024) });

type SharePage = { page: PageName; code: string };
const open = { credential: "none", tag: "Pages", hidden: true } as const;
const params = v.object({ code: v.string() });

/**
 * `/s/<code>` and `/embed/s/<code>`: the pages of a share. A viewer is a name in a cookie, by which a reload is no other
 * play; the page gives the player a playback token of the share and the viewer.
 */
export const sharePageRoutes = (tokens: PlaybackTokens, egress: Egress): Route[] => [
  ...(["watch", "embed"] as const).flatMap((page) => [
    route({
      ...open,
      method: "GET",
      path: sharePath(page, ":code"),
      params,
      summary: `Show the ${page} page of a share`,
      responses: { 200: null },
      handle: (context) => show(context, tokens, { page, code: context.params.code }),
    }),
    route({
      ...open,
      method: "POST",
      path: sharePath(page, ":code"),
      params,
      summary: "Send the password of a share, as JSON or as a form",
      raw: true,
      responses: { 204: null },
      handle: (context) => unlock(context, tokens, { page, code: context.params.code }),
    }),
  ]),
  route({
    ...open,
    method: "GET",
    path: `${sharePath("watch", ":code")}/download`,
    params,
    summary: "Download the video of a share",
    responses: { 200: null },
    handle: (context) => download(context, tokens, { egress, code: context.params.code }),
  }),
  route({
    ...open,
    method: "GET",
    path: `${sharePath("watch", ":code")}/poster.jpg`,
    params,
    summary: "Get the poster of a share without a password, for link previews",
    responses: { 302: null },
    async handle({ app, params: { code } }) {
      const shared = await requireOpenShare(app, code);
      if (shared.share.passwordHash !== null) notFound("file");
      const token = await tokenFor(app, tokens, shared, newViewer());
      const location = mediaUrl(basePath(app.baseUrl()), shared.asset, "thumbnail.jpg", token);
      const headers = { location, "cache-control": "no-store", "content-length": "0" };
      return new Response(null, { status: 302, headers });
    },
  }),
];

const isRefusal = (error: unknown): error is HttpError => error instanceof HttpError && error.status < 500;

async function show(context: Context, tokens: PlaybackTokens, at: SharePage): Promise<Response> {
  const { app, headers } = context;
  try {
    let viewer: string | null = null;
    const shared = await requireOpenShare(app, at.code, async ({ share, asset }) => {
      viewer = viewerOf(app, share, headers);
      return viewer !== null && (await stateOf(app, { share, asset }, viewer)) === "counted";
    });
    viewer ??= viewerOf(app, shared.share, headers);
    if (viewer === null && shared.share.passwordHash !== null)
      return respondWith(app, at, passwordForm(app, at.page, at.code, null));
    return await play(context, tokens, { at, shared, viewer });
  } catch (error) {
    if (!isRefusal(error)) throw error;
    return respondWith(app, at, refusedShare(error));
  }
}

const stateOf = (app: App, { share, asset }: Shared, viewer: string) =>
  stateOfPlay(app, { shareId: share.id, viewer }, asset.durationSeconds);

type Playing = { at: SharePage; shared: Shared; viewer: string | null };

/** The page for a viewer who may play. After an hour another play begins, by another viewer. */
async function play(context: Context, tokens: PlaybackTokens, { at, shared, viewer }: Playing): Promise<Response> {
  const { app, url } = context;
  const { share, asset } = shared;
  const notice = stateNotice(asset);
  const isOver = viewer !== null && (await stateOf(app, shared, viewer)) === "over";
  const current = viewer === null || isOver ? newViewer() : viewer;
  const token = notice ? null : await tokenFor(app, tokens, shared, current);
  const canDownload = token !== null && share.allowDownload && downloadOf(shared) !== null;
  const view = notice ?? {
    ...(await assetView(app, asset, at.page, {
      token,
      query: url.searchParams,
      more: canDownload && downloadButton(app, share.code, token),
    })),
    head: shareHead(app, shared) || undefined,
    hasForm: canDownload,
  };
  const response = await respondWith(app, at, view);
  if (current !== viewer) addCookies(context, shared, current, response);
  return response;
}

const addCookies = ({ app, headers }: Context, { share }: Shared, viewer: string, response: Response): void => {
  for (const cookie of viewerCookies(app, share, viewer, { headers, basePath: basePath(app.baseUrl()) }))
    response.headers.append("set-cookie", cookie);
};

/** A playback token of a viewer, which ends with the share. */
function tokenFor(app: App, tokens: PlaybackTokens, { share, asset }: Shared, viewer: string): Promise<string> {
  const usual = app.clock.now() + tokenSeconds(asset.durationSeconds, undefined) * 1000;
  const expiresAt = Math.min(usual, share.expiresAt ?? usual);
  return tokens.sign(asset, expiresAt, {
    share: { shareId: share.id, viewer, mark: passwordMark(app, share) },
  });
}

/** No search engine lists it, nothing caches it, and only the embed page can be framed. */
async function respondWith(app: App, { page, code }: SharePage, view: Notice): Promise<Response> {
  const share = page === "embed" ? await findShareByCode(app, code) : undefined;
  const framedBy: View["framedBy"] = share ? ["'self'", ...(await allowedOriginsOf(app, share.tenantId))] : [];
  const headers = {
    ...view.headers,
    "x-robots-tag": "noindex, nofollow",
    ...(page === "watch" && { "x-frame-options": "DENY" }),
  };
  return respond(page, { ...view, isListed: false, framedBy, headers });
}

/**
 * Takes the password, and sets the cookie by which the page knows that its viewer has typed it: 204 for JSON. A form of the
 * page is answered with a page, so that it works without a script; in a frame with that of the player, because a browser may
 * refuse all cookies there.
 */
async function unlock(context: Context, tokens: PlaybackTokens, at: SharePage): Promise<Response> {
  const { app, headers } = context;
  if (!isForm(headers)) {
    const shared = await requireOpenShare(app, at.code);
    const body = (await readJson(context, { maxBytes: MAX_BODY_BYTES })) ?? {};
    await requirePassword(context, shared, validate(Password, body, "body").password);
    const response = new Response(null, { status: 204, headers: { "cache-control": "no-store" } });
    addCookies(context, shared, newViewer(), response);
    return response;
  }
  let shared: Shared;
  try {
    shared = await requireOpenShare(app, at.code);
  } catch (error) {
    if (!isRefusal(error)) throw error;
    return respondWith(app, at, refusedShare(error));
  }
  const form = new URLSearchParams(Buffer.from(await readBytes(context, MAX_BODY_BYTES)).toString("utf8"));
  try {
    await requirePassword(context, shared, form.get("password") ?? "");
  } catch (error) {
    if (!(error instanceof HttpError)) throw error;
    return respondWith(app, at, passwordForm(app, at.page, at.code, error));
  }
  const viewer = newViewer();
  if (at.page === "embed") {
    const response = await play(context, tokens, { at, shared, viewer });
    addCookies(context, shared, viewer, response);
    return response;
  }
  const location = basePath(app.baseUrl()) + sharePath(at.page, at.code);
  const response = new Response(null, {
    status: 303,
    headers: { location, "cache-control": "no-store", "content-length": "0" },
  });
  addCookies(context, shared, viewer, response);
  return response;
}

const isForm = (headers: Headers) => /^application\/x-www-form-urlencoded\b/i.test(headers.get("content-type") ?? "");

async function requirePassword({ app, address }: Context, { share }: Shared, password: string): Promise<void> {
  if (share.passwordHash !== null) await requireSharePassword(app, share, password, address);
}

async function download(
  context: Context,
  tokens: PlaybackTokens,
  { egress, code }: { egress: Egress; code: string },
): Promise<Response> {
  const { app, url, method, headers } = context;
  const shared = await requireOpenShare(app, code, async () => true);
  const { share, asset } = shared;
  const viewer = await requireToken(tokens, asset, url.searchParams.get("token"));
  if (viewer?.shareId !== share.id)
    throw new HttpError(403, "playback_token_invalid", "The playback token is not of this share.");
  const file = share.allowDownload ? downloadOf(shared) : null;
  if (!file) return notFound("download");
  if (method === "GET") await countPlay(context, viewer);
  const { key, contentType, disposition } = file;
  const delivery = {
    objects: storageOf(app),
    method,
    headers,
    cacheControl: "private, no-store",
    extraHeaders: { "content-disposition": disposition },
    onSent: (bytes: number) => egress.add(asset.tenantId, bytes),
  };
  return key === asset.mp4Path
    ? serveMp4(app, { ...delivery, asset: { ...asset, mp4Path: key } })
    : serveObject({ ...delivery, key, contentType });
}

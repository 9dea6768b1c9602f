import * as v from "valibot";
import type { App } from "#app.ts";
import type { ShownAsset } from "#features/assets/shown.ts";
import { countShown, requirePublished, shownVideos } from "#features/collections/published.ts";
import { collectionPath } from "#features/collections/schema.ts";
import { allowedOriginsOf } from "#features/tenants/queries.ts";
import { HttpError, invalid, pacer, sha256 } from "#lib/base";
import { encodedText } from "#platform/http/content-encoding.ts";
import { decodeCursor, encodeCursor } from "#platform/http/paging.ts";
import { queueOwner } from "#platform/http/queue-owner.ts";
import { type Context, type Route, route } from "#platform/http/route.ts";
import { admit } from "#platform/limits/expensive.ts";
import { Text } from "#protocol/fields.ts";
import type { CollectionRow } from "#storage/db/schema.ts";
import { type PageName, respond } from "../page.ts";
import { type PageLanguage, pageLanguage } from "../page-language.ts";
import { message, type Notice } from "../player-page.ts";
import { feedOf } from "./feed.ts";
import { collectionView, MAX_COUNTED } from "./page.ts";
import { playlistView } from "./playlist.ts";
import { textsIn } from "./texts.ts";

/** Videos of a page of the grid and of the feed. */
const PAGE = 48;
/** Videos of a playlist: the newest. */
const MAX_LISTED = 200;
const MAX_QUERY = 200;

const open = { method: "GET", credential: "none", tag: "Pages", hidden: true } as const;
const params = v.object({ code: v.string() });
const Cursor = v.optional(v.pipe(v.string(), v.maxLength(100, "is not a cursor of this page")));

/**
 * `/c/<code>`, its feed, and `/embed/c/<code>`: what anyone sees of a published collection. Nothing of it is cached, so
 * that a collection that is withdrawn is gone at once.
 */
export const collectionPageRoutes: Route[] = [
  route({
    ...open,
    path: collectionPath("page", ":code"),
    params,
    summary: "Show the page of a published collection",
    responses: { 200: null },
    handle: (context) => show(context, "watch", showGrid),
  }),
  route({
    ...open,
    path: collectionPath("embed", ":code"),
    params,
    summary: "Show the playlist of a published collection",
    responses: { 200: null },
    handle: (context) => show(context, "embed", showPlaylist),
  }),
  route({
    ...open,
    path: collectionPath("feed", ":code"),
    params,
    query: v.object({ cursor: Cursor }),
    summary: "Get the RSS feed of a published collection",
    cors: { allowHeaders: "", exposeHeaders: "" },
    responses: { 200: null },
    errors: { 403: ["tenant_suspended"], 410: ["collection_withdrawn"] },
    async handle(context) {
      const { app, query } = context;
      const collection = await requirePublished(app, context.params.code);
      const text = await admitted(context, "public_pages", async () => {
        const { videos, next } = await page(app, collection, { after: decodeCursor(query.cursor), limit: PAGE });
        return feedOf(app, { collection, videos, next, cursor: query.cursor ?? null });
      });
      return encodedText(context, {
        text: async () => text,
        etag: `"${sha256(text).slice(0, 32)}"`,
        headers: {
          "content-type": "application/rss+xml; charset=utf-8",
          // Programs ask often: unchanged it is a 304.
          "cache-control": "public, no-cache",
          "x-content-type-options": "nosniff",
        },
      });
    },
  }),
];

type Paged = { after: number | undefined; limit: number; q?: string };

async function page(
  app: App,
  collection: CollectionRow,
  { after, limit, q = "" }: Paged,
): Promise<{ videos: ShownAsset[]; next: string | null }> {
  const videos: ShownAsset[] = [];
  const pace = pacer();
  for await (const batch of shownVideos(app, collection, { q, after })(limit + 1)) {
    videos.push(...batch);
    await pace();
  }
  const last = videos[limit - 1];
  return { videos: videos.slice(0, limit), next: videos.length > limit && last ? encodeCursor(last.id) : null };
}

type Shower = (context: Context, collection: CollectionRow, language: PageLanguage) => Promise<Notice>;

async function show(context: Context<{ code: string }>, page: PageName, shower: Shower): Promise<Response> {
  const { app, headers } = context;
  const language = pageLanguage(headers);
  let framedBy: string[] = [];
  let view: Notice;
  try {
    const collection = await requirePublished(app, context.params.code);
    if (page === "embed") framedBy = ["'self'", ...(await allowedOriginsOf(app, collection.tenantId))];
    view = await shower(context, collection, language);
  } catch (error) {
    const refused = error instanceof HttpError ? refusal(error.status, language) : null;
    if (!refused) throw error;
    view = { ...refused, language, isListed: false };
  }
  return respond(page, { ...view, framedBy, headers: { ...view.headers, vary: "Accept-Language" } });
}

/** Null for other errors than that the collection cannot be shown. */
function refusal(status: number, language: PageLanguage): Notice | null {
  const t = textsIn(language);
  if (status === 410) return message(410, t.withdrawn, t.withdrawnText);
  if (status === 403) return message(403, t.suspended, t.suspendedText);
  return status === 404 ? message(404, t.notFound, t.notFoundText) : null;
}

const showGrid: Shower = async (context, collection, language) => {
  const { app, url } = context;
  const q = (url.searchParams.get("q") ?? "").trim();
  const fault = v.safeParse(Text(MAX_QUERY), q).issues?.[0]?.message;
  if (fault) invalid("q", fault);
  const cursor = url.searchParams.get("cursor") ?? undefined;
  const after = decodeCursor(cursor);
  // A search reads more than the page that it shows.
  return admitted(context, q === "" ? "public_pages" : "public_search", async () => {
    const { videos, next } = await page(app, collection, { after, limit: PAGE, q });
    const count = await countShown(app, collection, MAX_COUNTED + 1);
    return collectionView(app, { collection, videos, count, q, next, language, isFirst: cursor === undefined });
  });
};

const showPlaylist: Shower = (context, collection, language) =>
  admitted(context, "public_pages", async () => {
    const { app, url } = context;
    const { videos } = await page(app, collection, { after: undefined, limit: MAX_LISTED });
    return playlistView(app, { collection, videos, language }, url.searchParams);
  });

/** Does work that takes some milliseconds, fairly among the addresses that request it. */
async function admitted<T>(
  context: Pick<Context, "app" | "caller" | "address" | "signal">,
  name: "public_pages" | "public_search",
  work: () => Promise<T>,
): Promise<T> {
  const permit = await admit(context.app, name, queueOwner(context), context.signal);
  try {
    return await work();
  } finally {
    permit.release();
  }
}

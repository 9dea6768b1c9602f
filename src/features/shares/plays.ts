import { and, eq, sql } from "drizzle-orm";
import { LRUCache } from "lru-cache";
import { type App, forApp } from "#app.ts";
import { HttpError, sha256 } from "#lib/base";
import { countWindows, tooMany } from "#platform/http/limits.ts";
import type { Context } from "#platform/http/route.ts";
import { deleteInSlices } from "#platform/scheduled-tasks/delete-in-slices.ts";
import type { Db } from "#storage/db/open.ts";
import { prepared } from "#storage/db/prepared.ts";
import { type ShareRow, sharePlays, shares } from "#storage/db/schema.ts";
import { findShare } from "./queries.ts";
import { passwordMark, shareStatus } from "./rules.ts";

const HOUR_MS = 3_600_000;
/** The longest that a playback token, and the cookie of a page, is valid. */
const MAX_PLAY_MS = 12 * HOUR_MS;
const KEPT_MS = 2 * MAX_PLAY_MS;
const MAX_KNOWN = 50_000;

/** Who plays a share: from a playback token. `mark`: of the password that the viewer knew. */
export type ShareViewer = { shareId: number; viewer: string; mark: string };

const refuse = (): never => {
  throw new HttpError(403, "playback_token_invalid", "The share of this playback token has ended.");
};

const playOf = prepared((db) =>
  db
    .select({ startedAt: sharePlays.startedAt })
    .from(sharePlays)
    .where(
      and(eq(sharePlays.shareId, sql.placeholder("shareId")), eq(sharePlays.viewerHash, sql.placeholder("viewerHash"))),
    )
    .prepare(),
);
const readPlay = (db: Db, { shareId, viewer }: Pick<ShareViewer, "shareId" | "viewer">) =>
  playOf(db).get({ shareId, viewerHash: sha256(viewer) });

/** Each new play is a row, and everyone who opens the page is a new viewer. Beacons have a window of their own. */
const newPlays = forApp(({ config, cache: { redis } }) =>
  countWindows(config.rate_limit_beacon, { name: "share-play", redis }),
);
/** The request of a viewer. */
export type Visit = Pick<Context, "app" | "address">;

/** Plays that were counted, of the viewers who play now. */
const counted = forApp(() => new LRUCache<string, true>({ max: MAX_KNOWN }));
const nameOf = ({ shareId, viewer }: Pick<ShareViewer, "shareId" | "viewer">) => `${shareId} ${viewer}`;

/** Whether the first media request of a viewer was counted. */
async function isCounted(app: App, viewer: ShareViewer): Promise<boolean> {
  const name = nameOf(viewer);
  if (counted(app).get(name)) return true;
  if (!(await readPlay(app.db, viewer))) return false;
  counted(app).set(name, true);
  return true;
}

/**
 * The share of a viewer's token. Throws 403 `playback_token_invalid` when it was deleted, has expired or got another
 * password, and when it has had all its plays and the viewer's is none of them.
 */
export async function requirePlayableShare(app: App, viewer: ShareViewer): Promise<ShareRow> {
  const share = (await findShare(app, viewer.shareId)) ?? refuse();
  const status = shareStatus(share, app.clock.now());
  const hasOldPassword = share.passwordHash !== null && passwordMark(app, share) !== viewer.mark;
  if (status === "expired" || hasOldPassword) refuse();
  if (status === "played_out" && !(await isCounted(app, viewer))) refuse();
  return share;
}

/**
 * Counts the play of a viewer, once, at the first request for media. Throws 403 `playback_token_invalid` where the share
 * has had all its plays: of concurrent viewers only as many are admitted as it allows. Throws 429 for too many from one
 * address.
 */
export async function countPlay({ app, address }: Visit, viewer: ShareViewer): Promise<void> {
  if (await isCounted(app, viewer)) return;
  const { exceeded, waitSeconds } = await newPlays(app).countAddress(address);
  if (exceeded) throw tooMany(waitSeconds);
  await app.write(async (tx) => {
    if (await readPlay(tx, viewer)) return;
    const share = await tx.select().from(shares).where(eq(shares.id, viewer.shareId)).get();
    const now = app.clock.now();
    if (!share || share.deletedAt !== null || shareStatus(share, now) !== "active") return refuse();
    await tx
      .update(shares)
      .set({ playCount: sql`${shares.playCount} + 1` })
      .where(eq(shares.id, share.id));
    const { shareId } = viewer;
    await tx.insert(sharePlays).values({ shareId, viewerHash: sha256(viewer.viewer), startedAt: now });
  });
  counted(app).set(nameOf(viewer), true);
}

/**
 * Whether a viewer who loads the page again continues a play: "counted" within an hour and the duration of the video after
 * its first request, so that a reload in the middle of a long film is none; "new" before that request; "over" afterwards.
 */
export async function stateOfPlay(
  app: App,
  viewer: Pick<ShareViewer, "shareId" | "viewer">,
  durationSeconds: number,
): Promise<"new" | "counted" | "over"> {
  const play = await readPlay(app.db, viewer);
  if (!play) return "new";
  const until = play.startedAt + Math.min(MAX_PLAY_MS, HOUR_MS + durationSeconds * 1000);
  return app.clock.now() < until ? "counted" : "over";
}

/** Deletes plays that no reload can continue, in short transactions. */
export const prunePlays = (app: App): Promise<number> =>
  deleteInSlices(app, {
    table: "share_plays",
    key: "share_id, viewer_hash",
    where: sql`started_at <= ${app.clock.now() - KEPT_MS}`,
  });

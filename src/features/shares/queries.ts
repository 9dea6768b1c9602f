import { and, count, eq, isNull, sql } from "drizzle-orm";
import { type App, forApp } from "#app.ts";
import { HttpError, notFound } from "#lib/base";
import { type Caller, ownedBy } from "#platform/http/caller.ts";
import { cacheUntilCommit } from "#storage/db/commit-cache.ts";
import type { Db } from "#storage/db/open.ts";
import { prepared } from "#storage/db/prepared.ts";
import { type ShareRow, shares } from "#storage/db/schema.ts";

/** Shares of one asset that are not deleted. */
const MAX_SHARES = 1000;

const byId = prepared((db) =>
  db
    .select()
    .from(shares)
    .where(eq(shares.id, sql.placeholder("id")))
    .prepare(),
);
const byCode = prepared((db) =>
  db
    .select()
    .from(shares)
    .where(eq(shares.code, sql.placeholder("code")))
    .prepare(),
);

/** Valid until the next commit, and within a second where other servers write too: for each segment. */
const remembered = forApp((app) => ({
  byId: cacheUntilCommit(app.commits, (id: number) => byId(app.db).get({ id })),
  byCode: cacheUntilCommit(app.commits, (code: string) => byCode(app.db).get({ code })),
}));

/** Any tenant's share, for its viewers. Undefined where it is deleted or never existed. */
export async function findShare(app: App, id: number): Promise<ShareRow | undefined> {
  const row = await remembered(app).byId(id);
  return row?.deletedAt === null ? row : undefined;
}

/** The share of a URL, which may be deleted. */
export const findShareByCode = async (app: App, code: string): Promise<ShareRow | undefined> =>
  /^[A-Za-z0-9]{22}$/.test(code) ? remembered(app).byCode(code) : undefined;

/** A share of an asset that the caller may see. Throws 404. */
export const requireShare = async (
  db: Db,
  caller: Caller,
  { assetId, id }: { assetId: number; id: number },
): Promise<ShareRow> =>
  (await db
    .select()
    .from(shares)
    .where(
      and(eq(shares.id, id), eq(shares.assetId, assetId), isNull(shares.deletedAt), ownedBy(caller, shares.tenantId)),
    )
    .get()) ?? notFound("share");

/** Deleted shares of one asset whose URLs say that they have ended. */
const MAX_ENDED = 1000;
const ENDED_AT_ONCE = 100;

/** Deletes the rows of shares that ended before a thousand others of the asset, so that their number has a limit. */
export const forgetEnded = (tx: Db, assetId: number) =>
  tx.run(sql`DELETE FROM shares WHERE id IN (
    SELECT id FROM shares WHERE asset_id = ${assetId} AND deleted_at IS NOT NULL
    ORDER BY deleted_at DESC, id DESC LIMIT ${ENDED_AT_ONCE} OFFSET ${MAX_ENDED})`);

/** Throws 422 `share_limit_reached`. */
export async function requireFewerThanMax(tx: Db, assetId: number): Promise<void> {
  const ofAsset = and(eq(shares.assetId, assetId), isNull(shares.deletedAt));
  const { total = 0 } = (await tx.select({ total: count() }).from(shares).where(ofAsset).get()) ?? {};
  if (total >= MAX_SHARES)
    throw new HttpError(
      422,
      "share_limit_reached",
      `An asset has at most ${MAX_SHARES} shares; delete those that are no longer used.`,
    );
}

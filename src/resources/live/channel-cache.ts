import { and, asc, eq, gt, or, sql } from "drizzle-orm";
import type { Db } from "../../../storage/db/open.ts";
import { type LiveChannelRow, liveChannels, tenants } from "../../../storage/db/schema.ts";
import { forApp } from "../../app.ts";
import { pacer } from "../../lib/pace.ts";

/** The data for authorizing requests of the gateway. */
export type CachedChannel = Pick<LiveChannelRow, "id" | "tenantId" | "playbackPolicy" | "streamKeyHash" | "publisher">;

const PAGE = 500;
/** Longest time until a change by another process is visible. */
const STALE_MS = 1000;

const newerThan = (db: Db) =>
  db
    .select({
      id: liveChannels.id,
      tenantId: liveChannels.tenantId,
      channel: liveChannels.channel,
      playbackPolicy: liveChannels.playbackPolicy,
      streamKeyHash: liveChannels.streamKeyHash,
      publisher: liveChannels.publisher,
      revision: liveChannels.revision,
      revokedAt: liveChannels.revokedAt,
      status: tenants.status,
    })
    .from(liveChannels)
    .innerJoin(tenants, eq(tenants.id, liveChannels.tenantId))
    .where(
      or(
        gt(liveChannels.revision, sql.placeholder("revision")),
        and(eq(liveChannels.revision, sql.placeholder("revision")), gt(liveChannels.id, sql.placeholder("id"))),
      ),
    )
    .orderBy(asc(liveChannels.revision), asc(liveChannels.id))
    .limit(PAGE)
    .prepare();

/**
 * All channels that are neither revoked nor of a suspended tenant, by name. Never older than a commit of this process,
 * without waiting for one: after each, rows with a newer revision are read next to the write queue; mostly there are
 * none. Where others write to the database too, that is done once a second.
 */
export const channelCache = forApp((app) => {
  const statement = newerThan(app.db);
  const known = new Map<string, CachedChannel>();
  let seen = { revision: -1, id: 0 };
  let commitsSeen = -1;
  let readAt = Number.NEGATIVE_INFINITY;
  let reading: Promise<void> | null = null;

  async function read(): Promise<void> {
    const commits = app.commits();
    const now = app.clock.now();
    const pace = pacer();
    for (let isMore = true; isMore; await pace()) {
      const rows = await statement.all(seen);
      for (const { channel, status, revokedAt, revision, ...row } of rows) {
        if (revokedAt === null && status === "active") known.set(channel, row);
        // Its name may belong to another channel by now.
        else if (known.get(channel)?.id === row.id) known.delete(channel);
        seen = { revision, id: row.id };
      }
      isMore = rows.length === PAGE;
    }
    commitsSeen = commits ?? 0;
    readAt = now;
  }
  const readOnce = () => {
    reading ??= read().finally(() => {
      reading = null;
    });
    return reading;
  };

  async function refresh(): Promise<void> {
    const commits = app.commits();
    if (commits === null) {
      const now = app.clock.now();
      if (now < readAt || now - readAt >= STALE_MS) await readOnce();
      return;
    }
    // A read in progress may have begun before the last commit.
    while (commitsSeen < commits) await readOnce();
  }

  /** With all that other processes have committed before the call. */
  async function refreshNow(): Promise<void> {
    await reading?.catch(() => {});
    readAt = Number.NEGATIVE_INFINITY;
    await refresh();
  }

  return {
    refresh,
    async find(channel: string): Promise<CachedChannel | undefined> {
      await refresh();
      return known.get(channel);
    },
    /** The same, not even a second old. */
    async findNow(channel: string): Promise<CachedChannel | undefined> {
      await refreshNow();
      return known.get(channel);
    },
    /**
     * Called after a committed change of this process, to apply it immediately. If reading fails, the next request
     * repeats it.
     */
    async changed(): Promise<void> {
      await refreshNow().catch((error) => app.log.warn({ err: error }, "live channels could not be reloaded"));
    },
  };
});

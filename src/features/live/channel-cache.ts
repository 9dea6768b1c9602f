import { and, asc, eq, gt, gte, or, sql } from "drizzle-orm";
import { forApp } from "#app.ts";
import { pacer } from "#lib/base";
import type { Db } from "#storage/db/open.ts";
import { type LiveChannelRow, liveChannels, tenants } from "#storage/db/schema.ts";
import { isTenant } from "../tenants/active.ts";

/** The data for authorizing requests of the gateway. */
export type CachedChannel = Pick<
  LiveChannelRow,
  | "id"
  | "tenantId"
  | "playbackPolicy"
  | "streamKeyHash"
  | "publisher"
  | "enabled"
  | "maxDurationSeconds"
  | "endedStream"
>;

type Newest = { revision: number; id: number };

const NONE: Newest = { revision: -1, id: 0 };
const PAGE = 500;
/** Longest time until a change by another process is visible. */
const STALE_MS = 1000;

const fromRevision = (db: Db) =>
  db
    .select({
      id: liveChannels.id,
      tenantId: liveChannels.tenantId,
      channel: liveChannels.channel,
      playbackPolicy: liveChannels.playbackPolicy,
      streamKeyHash: liveChannels.streamKeyHash,
      publisher: liveChannels.publisher,
      enabled: liveChannels.enabled,
      maxDurationSeconds: liveChannels.maxDurationSeconds,
      endedStream: liveChannels.endedStream,
      revision: liveChannels.revision,
      revokedAt: liveChannels.revokedAt,
      status: tenants.status,
    })
    .from(liveChannels)
    .innerJoin(tenants, eq(tenants.id, liveChannels.tenantId))
    .where(
      or(
        gt(liveChannels.revision, sql.placeholder("revision")),
        and(eq(liveChannels.revision, sql.placeholder("revision")), gte(liveChannels.id, sql.placeholder("id"))),
      ),
    )
    .orderBy(asc(liveChannels.revision), asc(liveChannels.id))
    .limit(PAGE)
    .prepare();

/**
 * All channels that are neither revoked nor of a suspended tenant, by name. Never older than a commit of this process,
 * without waiting for one: after each, rows with a newer revision are read next to the write queue, from the newest known
 * row on, which mostly is the only one. Where others write to the database too, that is done once a second.
 */
export const channelCache = forApp((app) => {
  const statement = fromRevision(app.db);
  let known = new Map<string, CachedChannel>();
  let newest: Newest | null = null;
  let commitsSeen = -1;
  let readAt = Number.NEGATIVE_INFINITY;
  let reading: Promise<void> | null = null;

  /** Reads the rows from `first` on into `channels`. Returns the newest; null when `first` does not exist any more. */
  async function readFrom(first: Newest | null, channels: Map<string, CachedChannel>): Promise<Newest | null> {
    const pace = pacer();
    let from = first ?? NONE;
    let last = first;
    let isFirstThere = first === null;
    for (let isMore = true; isMore; await pace()) {
      const rows = await statement.all(from);
      for (const { channel, status, revokedAt, revision, ...row } of rows) {
        if (revokedAt === null && status === "active") channels.set(channel, row);
        // Its name may belong to another channel by now.
        else if (channels.get(channel)?.id === row.id) channels.delete(channel);
        if (row.id === first?.id) isFirstThere = true;
        last = { revision, id: row.id };
        from = { revision, id: row.id + 1 };
      }
      isMore = rows.length === PAGE;
    }
    return isFirstThere ? last : null;
  }

  async function read(): Promise<void> {
    const commits = app.commits();
    const now = app.clock.now();
    newest = newest && (await readFrom(newest, known));
    if (newest === null) {
      // The newest row was deleted, with its tenant: later changes may have received a revision that is not newer.
      const all = new Map<string, CachedChannel>();
      newest = await readFrom(null, all);
      known = all;
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

  /** A deleted tenant leaves no row with a newer revision, and its suspension may not have been read before. */
  async function keptOf(channel: string): Promise<CachedChannel | undefined> {
    const found = known.get(channel);
    if (!found || (await isTenant(app, found.tenantId))) return found;
    if (known.get(channel) === found) known.delete(channel);
    return undefined;
  }

  return {
    refresh,
    async find(channel: string): Promise<CachedChannel | undefined> {
      await refresh();
      return keptOf(channel);
    },
    /** The same, not even a second old. */
    async findNow(channel: string): Promise<CachedChannel | undefined> {
      await refreshNow();
      return keptOf(channel);
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

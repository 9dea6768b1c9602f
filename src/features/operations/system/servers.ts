import { createHmac } from "node:crypto";
import { hostname } from "node:os";
import { and, eq, gt, lte, ne } from "drizzle-orm";
import { type App, forApp } from "#app.ts";
import { randomName, UserError } from "#lib/base";
import { storeDriver } from "#platform/config/stores.ts";
import type { Db } from "#storage/db/open.ts";
import { type ServerRow, servers } from "#storage/db/schema.ts";
import { storageLocationOf } from "../migration/storage-location.ts";

/** A server that has not announced itself for this long is considered stopped. Announced every ten seconds. */
const SILENT_MS = 45_000;

const isRemote = ({ config }: App) => config.database_url !== undefined && !config.database_url.startsWith("file:");

/**
 * Whether other servers may use the same database; a file belongs to one process, or to the processes of one server.
 */
const isShared = (app: App) => app.peers !== null || isRemote(app);

const own = forApp((app) => ({
  id: randomName(16),
  host: hostname(),
  // Reveals nothing about the secret to readers of the database.
  secretHash: createHmac("sha256", app.secrets.signing_secret).update("servers of one platform").digest("base64url"),
  objects: app.objects === null ? "none" : storeDriver(app.objects.kind).locationOf(app.config),
  startedAt: app.clock.now(),
}));

/** Running servers other than this one. */
export const otherServers = (db: Db, app: App): Promise<ServerRow[]> =>
  db
    .select()
    .from(servers)
    .where(and(ne(servers.id, own(app).id), gt(servers.seenAt, app.clock.now() - SILENT_MS)))
    .all();

/**
 * Registers this server on a shared database. Throws a UserError when its configuration conflicts with the others:
 * other secrets would make tokens, leases and URLs invalid, and another storage has other objects.
 */
export async function joinServers(app: App): Promise<void> {
  if (!isShared(app)) return;
  const now = app.clock.now();
  await app.write(async (tx) => {
    // The lock on the data directory proves that other servers on its file have stopped.
    const isAlone = app.peers?.isFirst && !isRemote(app);
    await tx.delete(servers).where(isAlone ? undefined : lte(servers.seenAt, now - SILENT_MS));
    const others = await otherServers(tx, app);
    for (const other of others) requireLike(app, other);
    if (others.length > 0) await requireAtRest(tx);
    await tx.insert(servers).values({ ...own(app), seenAt: now });
  });
}

function requireLike(app: App, other: ServerRow): void {
  const { secretHash, objects } = own(app);
  const seconds = Math.max(0, Math.round((app.clock.now() - other.seenAt) / 1000));
  const otherServer = `A server on ${other.host}, last seen ${seconds} s ago, uses this database`;
  const advice = `If it no longer runs, restart in ${SILENT_MS / 1000} s.`;
  if (other.secretHash !== secretHash)
    throw new UserError(
      `${otherServer} with another signing secret. Set the same VODBOX_SIGNING_SECRET and tokens on all servers. ${advice}`,
    );
  if (other.objects !== objects)
    throw new UserError(
      `${otherServer} with another object storage (${other.objects}; here: ${objects}). Servers that share a database must share their objects: use S3. ${advice}`,
    );
}

/** A storage migration runs with a single server, because each server has its own active store. */
async function requireAtRest(tx: Db): Promise<void> {
  const location = await storageLocationOf(tx);
  if (location && location.phase !== "settled")
    throw new UserError(
      `Objects are being migrated between ${location.active} and ${location.other} storage, which only a single server process can do; start more when it has completed (vodbox admin storage status).`,
    );
}

/** Scheduled task: announces that this server runs, and on shutdown that it has stopped. */
export async function announceServer(app: App): Promise<void> {
  if (!isShared(app)) return;
  const now = app.clock.now();
  await app.write(async (tx) => {
    if (app.stopping.aborted) return void (await tx.delete(servers).where(eq(servers.id, own(app).id)));
    // Others may have considered this server stopped while the machine slept.
    await tx
      .insert(servers)
      .values({ ...own(app), seenAt: now })
      .onConflictDoUpdate({ target: servers.id, set: { seenAt: now } });
  });
}

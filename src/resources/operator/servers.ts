import { createHmac } from "node:crypto";
import { realpathSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { and, eq, gt, lte, ne } from "drizzle-orm";
import type { Db } from "../../../storage/db/open.ts";
import { type ServerRow, servers } from "../../../storage/db/schema.ts";
import { type App, forApp } from "../../app.ts";
import { UserError } from "../../lib/errors.ts";
import { randomName } from "../../lib/tokens.ts";
import { storageLocationOf } from "./migration/storage-location.ts";

/** Who is silent for so long is gone. Told of every ten seconds. */
const SILENT_MS = 45_000;

const isRemote = ({ config }: App) => config.database_url !== undefined && !config.database_url.startsWith("file:");

/** Whether others may serve from the same database; a file belongs to one process, or to several of one server. */
const isShared = (app: App) => app.peers !== null || isRemote(app);

const own = forApp((app) => ({
  id: randomName(16),
  host: hostname(),
  // Says nothing of the secret to who reads the database.
  secretHash: createHmac("sha256", app.secrets.signing_secret).update("servers of one platform").digest("base64url"),
  objects: placeOfObjects(app),
  startedAt: app.clock.now(),
}));

function placeOfObjects({ config, objects }: App): string {
  if (objects === null) return "none";
  if (objects.kind === "s3") return `s3 ${config.s3_endpoint} ${config.s3_bucket} ${config.s3_prefix ?? ""}`;
  return `folder ${realpathSync(join(config.data_dir, "objects"))} of ${hostname()}`;
}

/** Those that live, but for this one. */
export const otherServers = (db: Db, app: App): Promise<ServerRow[]> =>
  db
    .select()
    .from(servers)
    .where(and(ne(servers.id, own(app).id), gt(servers.seenAt, app.clock.now() - SILENT_MS)))
    .all();

/**
 * Takes a place among the servers of a shared database. Throws a UserError where they would not understand each other:
 * other secrets make worthless tokens, leases and addresses, and other storage holds other objects.
 */
export async function joinServers(app: App): Promise<void> {
  if (!isShared(app)) return;
  const now = app.clock.now();
  await app.write(async (tx) => {
    // Who holds the data directory knows that all the others of its file are gone.
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
  const who = `A server on ${other.host}, which told of itself ${seconds} s ago, uses this database`;
  const gone = `If it has gone, start again in ${SILENT_MS / 1000} s.`;
  if (other.secretHash !== secretHash)
    throw new UserError(
      `${who} with another signing secret. Give all of them the same VODBOX_SIGNING_SECRET, and tokens alike. ${gone}`,
    );
  if (other.objects !== objects)
    throw new UserError(
      `${who} with objects in another place (${other.objects}; here: ${objects}). Servers that share a database share their objects: use S3. ${gone}`,
    );
}

/** Who moves objects does it alone: each server knows by itself where they lie. */
async function requireAtRest(tx: Db): Promise<void> {
  const place = await storageLocationOf(tx);
  if (place && place.phase !== "settled")
    throw new UserError(
      `Objects are being moved between ${place.active} and ${place.other} storage, which one server does alone; start a second one, or more processes, when that is over (vodbox admin storage status).`,
    );
}

/** Scheduled task: announces that this server runs, and on shutdown that it has stopped. */
export async function announceServer(app: App): Promise<void> {
  if (!isShared(app)) return;
  const now = app.clock.now();
  await app.write(async (tx) => {
    if (app.stopping.aborted) return void (await tx.delete(servers).where(eq(servers.id, own(app).id)));
    // Others may have given this one up for dead while it slept.
    await tx
      .insert(servers)
      .values({ ...own(app), seenAt: now })
      .onConflictDoUpdate({ target: servers.id, set: { seenAt: now } });
  });
}

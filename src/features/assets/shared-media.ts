import { and, asc, desc, eq, gte, lt, ne, sql } from "drizzle-orm";
import type { App } from "#app.ts";
import { backgroundPacer, mapBounded } from "#lib/base";
import { isShared, type SharedMedia, SharedPaths } from "#lib/manifests";
import { endOfPrefix, isMediaPrefix, ownPath, prefixesOf } from "#model/object-keys.ts";
import type { Db } from "#storage/db/open.ts";
import { type AssetRow, assets, objectGarbage } from "#storage/db/schema.ts";
import { deletePrefix } from "#storage/objects/delete-prefix.ts";
import { listPages } from "#storage/objects/list-all.ts";
import type { ObjectStore } from "#storage/objects/store.ts";
import { KEPT_MS, replaceMedia } from "./replaced-media.ts";
import { addStoredBytes, mediaBytesOf } from "./stored-bytes.ts";

/*
 * A clip has its own manifests, under its media prefix, and plays segments of another asset, which stay where they are:
 * under `sharedPrefix`. The rows of the clips are the references. Code that deletes a prefix leaves what a clip plays.
 * The bytes are counted once: by the asset whose media they are, and without it by one clip (`sharedBytes`).
 */

const PAGE = 1000;
const AT_ONCE = 16;

/** Where the media of an asset are. */
export type Media = Pick<AssetRow, "mediaPrefix" | "sharedPrefix" | "sharedMedia">;

/** The object key of a path below the media of an asset. `mediaPrefix` is not null. */
export const mediaKey = ({ mediaPrefix, sharedPrefix, sharedMedia }: Media, path: string): string =>
  (sharedPrefix !== null && sharedMedia !== null && isShared(sharedMedia, path) ? sharedPrefix : mediaPrefix) + path;

/** The clip that counts the bytes of the media under `prefix`, or will: the first one. */
const countingClip = (tx: Db, prefix: string) =>
  tx
    .select({ id: assets.id, tenantId: assets.tenantId, sharedBytes: assets.sharedBytes })
    .from(assets)
    .where(eq(assets.sharedPrefix, prefix))
    .orderBy(desc(assets.sharedBytes), asc(assets.id))
    .limit(1)
    .get();

/**
 * An asset that was read in the same transaction loses its media: it is deleted, or gets others. If clips play some of
 * them, one of these counts all bytes from now on, until the objects that no clip plays are deleted.
 */
export async function passOnMedia(tx: Db, app: App, asset: AssetRow): Promise<void> {
  const { mediaPrefix: prefix } = asset;
  const heir = prefix === null ? undefined : await countingClip(tx, prefix);
  if (prefix === null || !heir || !(await isWithoutOwner(tx, prefix, asset))) return;
  await addSharedBytes(tx, app, heir, await mediaBytesOf(tx, asset));
  await deleteAgain(tx, app, prefix);
}

/**
 * A clip was deleted in the caller's transaction. If its media have no asset of their own, another clip counts them now,
 * and what no clip plays is deleted.
 */
export async function releaseMedia(tx: Db, app: App, clip: AssetRow): Promise<void> {
  const { sharedPrefix: prefix, sharedBytes } = clip;
  if (prefix === null || !(await isWithoutOwner(tx, prefix, clip))) return;
  const heir = await countingClip(tx, prefix);
  if (heir) await addSharedBytes(tx, app, heir, sharedBytes);
  await deleteAgain(tx, app, prefix);
}

/** A clip plays fewer of its shared media now: what no other clip plays is deleted after `inMs`, if no asset has it. */
export async function scheduleRelease(tx: Db, app: App, clip: AssetRow, inMs = 0): Promise<void> {
  const { sharedPrefix: prefix } = clip;
  if (prefix !== null && (await isWithoutOwner(tx, prefix, clip))) await deleteAgain(tx, app, prefix, inMs);
}

/**
 * An asset that was read in the same transaction is to play only the part `shared` of its media, from other manifests. All
 * of them are served for another hour; then what no clip plays is deleted. Returns its changed row.
 */
export async function trimMedia(
  tx: Db,
  app: App,
  before: AssetRow,
  { sharedPrefix, sharedMedia }: { sharedPrefix: string; sharedMedia: SharedMedia },
): Promise<AssetRow> {
  await replaceMedia(tx, app, before);
  const isAsset = eq(assets.id, before.id);
  const trimmed = await tx.update(assets).set({ sharedPrefix, sharedMedia }).where(isAsset).returning().get();
  if (before.sharedPrefix === null) await passOnMedia(tx, app, before);
  else await scheduleRelease(tx, app, trimmed, KEPT_MS);
  return (await tx.select().from(assets).where(isAsset).get()) as AssetRow;
}

/** Whether media may be deleted when no clip plays them: they are of no other asset than `asset`, and not a client's own. */
async function isWithoutOwner(tx: Db, prefix: string, { id, tenantId }: AssetRow): Promise<boolean> {
  if (!isMediaPrefix(prefix, tenantId)) return false;
  const isOwner = and(eq(assets.mediaPrefix, prefix), ne(assets.id, id));
  return (await tx.select({ id: assets.id }).from(assets).where(isOwner).limit(1).get()) === undefined;
}

/** Again also while a run of the garbage collection deletes the same prefix, which may have read this clip before. */
const deleteAgain = (tx: Db, app: App, objectKey: string, inMs = 0) =>
  tx
    .insert(objectGarbage)
    .values({ objectKey, dueAt: app.clock.now() + inMs })
    .onConflictDoUpdate({
      target: objectGarbage.objectKey,
      set: { dueAt: sql`max(excluded.due_at, ${objectGarbage.dueAt} + 1)` },
    });

async function addSharedBytes(tx: Db, app: App, clip: Pick<AssetRow, "id" | "tenantId">, bytes: number): Promise<void> {
  await tx
    .update(assets)
    .set({ sharedBytes: sql`max(0, ${assets.sharedBytes} + ${bytes})` })
    .where(eq(assets.id, clip.id));
  await addStoredBytes(tx, app, clip, bytes);
}

/** What clips play below a prefix, by the prefix of the media. */
type Users = Map<string, { paths: SharedPaths; bytes: number }>;

const below = (prefix: string) => and(gte(assets.sharedPrefix, prefix), lt(assets.sharedPrefix, endOfPrefix(prefix)));

async function usersOf({ db }: App, prefix: string): Promise<Users> {
  const users: Users = new Map();
  for (let at: { prefix: string; id: number } = { prefix, id: 0 }; ; ) {
    const rows = await db
      .select({ id: assets.id, prefix: assets.sharedPrefix, media: assets.sharedMedia })
      .from(assets)
      .where(and(below(prefix), sql`(${assets.sharedPrefix}, ${assets.id}) > (${at.prefix}, ${at.id})`))
      .orderBy(asc(assets.sharedPrefix), asc(assets.id))
      .limit(PAGE)
      .all();
    for (const { id, prefix: shared, media } of rows) {
      if (shared === null || media === null) continue;
      const user = users.get(shared) ?? { paths: new SharedPaths(), bytes: 0 };
      user.paths.add(media);
      users.set(shared, user);
      at = { prefix: shared, id };
    }
    if (rows.length < PAGE) return users;
  }
}

/**
 * Deletes every object under `prefix`, which must end in a slash, except those that a clip plays; their size replaces the
 * one that the counting clip had. No asset may have its own media there any more, so clips can only become fewer. May be
 * repeated after a failure.
 */
export async function deleteUnshared(app: App, objects: ObjectStore, prefix: string): Promise<void> {
  const users = await usersOf(app, prefix);
  if (users.size === 0) {
    await deletePrefix(objects, prefix);
    return;
  }
  const pace = backgroundPacer();
  for await (const page of listPages(objects, prefix)) {
    const unused: string[] = [];
    for (const { key, bytes } of page) {
      const [shared, user] = userOf(users, key) ?? [];
      if (shared !== undefined && user?.paths.has(ownPath(shared, key))) user.bytes += bytes;
      else unused.push(key);
      await pace();
    }
    await mapBounded(unused, { atOnce: AT_ONCE }, (key) => objects.delete(key));
  }
  await app.write(async (tx) => {
    for (const [shared, { bytes }] of users) {
      const clip = await countingClip(tx, shared);
      if (clip) await addSharedBytes(tx, app, clip, bytes - clip.sharedBytes);
    }
  });
}

/** Prefixes of media are never within each other. */
function userOf(users: Users, key: string) {
  for (const prefix of prefixesOf(key)) {
    const user = users.get(prefix);
    if (user) return [prefix, user] as const;
  }
  return undefined;
}

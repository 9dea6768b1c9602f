import { and, asc, eq, lt, sql } from "drizzle-orm";
import type { App } from "#app.ts";
import { HttpError, sha256 } from "#lib/base";
import { deleteInSlices } from "#platform/scheduled-tasks/delete-in-slices.ts";
import type { Db } from "#storage/db/open.ts";
import { encodingProfiles, tenantWatermarks, watermarks } from "#storage/db/schema.ts";
import { isDecodablePng, pngSize } from "./png.ts";

export const MAX_IMAGE_BYTES = 2 ** 20;
/** The size of all images of a tenant. */
const MAX_TENANT_BYTES = 20 * 2 ** 20;
/** Larger ones would be scaled down, and could take a gigabyte of memory in the worker. */
const MAX_SIDE = 4096;
/** Longer than a job that was queued with an image waits, its retries included. */
const KEPT_MS = 30 * 24 * 3_600_000;

const refuse = (message: string): never => {
  throw new HttpError(422, "invalid_image", message);
};

/**
 * Throws 422 `invalid_image` for anything but a PNG image of a usable size that can be decoded: with another one, every job
 * of the profile would fail. `maxSide`: pixels.
 */
export async function requirePng(body: Uint8Array, maxSide = MAX_SIDE): Promise<void> {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  const { width, height } = pngSize(bytes) ?? refuse("The body is not a PNG image.");
  if (Math.min(width, height) < 1 || Math.max(width, height) > maxSide)
    refuse(`The image must be at most ${maxSide} pixels wide and high.`);
  if (!(await isDecodablePng(bytes))) refuse("The PNG image is damaged or incomplete; export it again.");
}

/** Stores an image and returns its SHA-256. */
export async function storeImage(tx: Db, app: App, bytes: Uint8Array): Promise<string> {
  const name = sha256(bytes);
  const usedAt = app.clock.now();
  await tx
    .insert(watermarks)
    .values({ sha256: name, image: Buffer.from(bytes).toString("base64"), usedAt })
    .onConflictDoUpdate({ target: watermarks.sha256, set: { usedAt } });
  return name;
}

/** Records that a job uses an image, which is then kept for a while, whatever happens to the profile. */
export const keepImage = (tx: Db, app: App, name: string) => {
  const now = app.clock.now();
  return tx.update(watermarks).set({ usedAt: now, jobUsedAt: now }).where(eq(watermarks.sha256, name));
};

/**
 * Counts an image, which a profile of the tenant uses already, among the images that are kept for the tenant. Images
 * that neither a profile nor a recent job uses are deleted for it, the oldest first. Throws 422 `watermark_limit_reached`.
 */
export async function countImage(tx: Db, app: App, tenantId: number, sha256: string, bytes: number): Promise<void> {
  await tx.insert(tenantWatermarks).values({ tenantId, sha256, bytes }).onConflictDoNothing();
  let total = await imageBytesOf(tx, tenantId);
  if (total <= MAX_TENANT_BYTES) return;
  for (const unused of await unusedOf(tx, app, tenantId)) {
    await tx
      .delete(tenantWatermarks)
      .where(and(eq(tenantWatermarks.tenantId, tenantId), eq(tenantWatermarks.sha256, unused.sha256)));
    await tx.delete(watermarks).where(and(eq(watermarks.sha256, unused.sha256), HAS_NO_OWNER, notOfJob(app)));
    total -= unused.bytes;
    if (total <= MAX_TENANT_BYTES) return;
  }
  throw new HttpError(
    422,
    "watermark_limit_reached",
    `The images of watermarks in use have ${total} bytes, and at most ${MAX_TENANT_BYTES} are allowed; use smaller images, or delete encoding profiles.`,
  );
}

async function imageBytesOf(tx: Db, tenantId: number): Promise<number> {
  const bytes = sql<number>`coalesce(sum(${tenantWatermarks.bytes}), 0)`;
  const ofTenant = eq(tenantWatermarks.tenantId, tenantId);
  return (await tx.select({ bytes }).from(tenantWatermarks).where(ofTenant).get())?.bytes ?? 0;
}

/** Images of a tenant that neither its profiles nor recent jobs use, the oldest first. */
const unusedOf = (tx: Db, app: App, tenantId: number) =>
  tx
    .select({ sha256: tenantWatermarks.sha256, bytes: tenantWatermarks.bytes })
    .from(tenantWatermarks)
    .innerJoin(watermarks, eq(watermarks.sha256, tenantWatermarks.sha256))
    .where(
      and(
        eq(tenantWatermarks.tenantId, tenantId),
        notOfJob(app),
        sql`not exists (select 1 from ${encodingProfiles} where ${encodingProfiles.watermark} = ${watermarks.sha256} and ${encodingProfiles.tenantId} = ${tenantId})`,
      ),
    )
    .orderBy(asc(watermarks.usedAt))
    .all();

const notOfJob = (app: App) => lt(watermarks.jobUsedAt, app.clock.now() - KEPT_MS);
const IS_UNUSED = sql`not exists (select 1 from ${encodingProfiles} where ${encodingProfiles.watermark} = ${watermarks.sha256})`;
const HAS_NO_OWNER = sql`${IS_UNUSED} and not exists (select 1 from ${tenantWatermarks} where ${tenantWatermarks.sha256} = ${watermarks.sha256})`;

export async function readImage(db: Db, name: string): Promise<Buffer<ArrayBuffer> | null> {
  const row = await db.select({ image: watermarks.image }).from(watermarks).where(eq(watermarks.sha256, name)).get();
  return row ? Buffer.from(row.image, "base64") : null;
}

/** Deletes images that no profile and no recent job uses. */
export const pruneWatermarks = (app: App): Promise<number> =>
  deleteInSlices(app, {
    table: "watermarks",
    key: "sha256",
    where: sql`used_at < ${app.clock.now() - KEPT_MS}
      AND NOT EXISTS (SELECT 1 FROM encoding_profiles WHERE watermark = watermarks.sha256)`,
  });

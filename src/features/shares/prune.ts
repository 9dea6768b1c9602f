import { sql } from "drizzle-orm";
import type { App } from "#app.ts";
import { deleteInSlices } from "#platform/scheduled-tasks/delete-in-slices.ts";
import { prunePlays } from "./plays.ts";

/** So long the URL of a deleted share says that it has ended. */
const KEPT_MS = 365 * 24 * 3_600_000;

/** Deletes old plays, and shares that were deleted long ago. */
export async function pruneShares(app: App): Promise<void> {
  await prunePlays(app);
  await deleteInSlices(app, { table: "shares", where: sql`deleted_at <= ${app.clock.now() - KEPT_MS}` });
}

import { sql } from "drizzle-orm";
import type { App } from "#app.ts";
import { deleteInSlices } from "#platform/scheduled-tasks/delete-in-slices.ts";

/** Deletes expired sessions. */
export const pruneSessions = (app: App): Promise<number> =>
  deleteInSlices(app, { table: "sessions", where: sql`expires_at <= ${app.clock.now()}` });

import { eq } from "drizzle-orm";
import type { PlanResult } from "#protocol/task.ts";
import type { Db } from "#storage/db/open.ts";
import { transcodingAttempts } from "#storage/db/schema.ts";

/** The plan of an attempt; null before it is complete. */
export async function planOf(db: Db, attemptId: number): Promise<PlanResult | null> {
  const attempt = await db
    .select({ plan: transcodingAttempts.plan })
    .from(transcodingAttempts)
    .where(eq(transcodingAttempts.id, attemptId))
    .get();
  return (attempt?.plan ?? null) as PlanResult | null;
}

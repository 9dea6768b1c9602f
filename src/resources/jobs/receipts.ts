import { and, eq } from "drizzle-orm";
import type { Db } from "../../../storage/db/open.ts";
import { callbackReceipts, type JobRow } from "../../../storage/db/schema.ts";

export type Operation = (typeof callbackReceipts.$inferSelect)["operation"];
export type Receipt = Pick<typeof callbackReceipts.$inferSelect, "requestHash" | "status" | "body">;

/** Called in the transaction of the change, with the job as it leaves it. */
export type StoreReceipt = (tx: Db, job: JobRow) => Promise<JobRow>;
export const storeNoReceipt: StoreReceipt = async (_, job) => job;

export const receiptOf = (db: Db, attemptId: number, operation: Operation): Promise<Receipt | undefined> =>
  db
    .select({
      requestHash: callbackReceipts.requestHash,
      status: callbackReceipts.status,
      body: callbackReceipts.body,
    })
    .from(callbackReceipts)
    .where(and(eq(callbackReceipts.attemptId, attemptId), eq(callbackReceipts.operation, operation)))
    .get();

/** One an operation: a heartbeat's is its latest, the others end the attempt and so come once. */
export async function storeReceipt(
  tx: Db,
  now: number,
  { attemptId, operation, ...receipt }: Receipt & { attemptId: number; operation: Operation },
): Promise<void> {
  const kept = { ...receipt, createdAt: now };
  await tx
    .insert(callbackReceipts)
    .values({ attemptId, operation, ...kept })
    .onConflictDoUpdate({ target: [callbackReceipts.attemptId, callbackReceipts.operation], set: kept });
}

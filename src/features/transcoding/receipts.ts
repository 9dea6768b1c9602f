import { and, eq } from "drizzle-orm";
import type { Db } from "#storage/db/open.ts";
import { callbackReceipts, type JobRow } from "#storage/db/schema.ts";

export type Operation = (typeof callbackReceipts.$inferSelect)["operation"];
export type Receipt = Pick<typeof callbackReceipts.$inferSelect, "requestHash" | "status" | "body">;

/** Called in the transaction of the change, with the resulting job, or the task after a heartbeat. */
export type StoreReceipt<Row = JobRow> = (tx: Db, row: Row) => Promise<Row>;
export const storeNoReceipt = async <Row>(_: Db, row: Row): Promise<Row> => row;

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

/** One per operation: a heartbeat's is its latest; the other operations end the attempt and so occur once. */
export async function storeReceipt(
  tx: Db,
  now: number,
  { attemptId, operation, ...receipt }: Receipt & { attemptId: number; operation: Operation },
): Promise<void> {
  const stored = { ...receipt, createdAt: now };
  await tx
    .insert(callbackReceipts)
    .values({ attemptId, operation, ...stored })
    .onConflictDoUpdate({ target: [callbackReceipts.attemptId, callbackReceipts.operation], set: stored });
}

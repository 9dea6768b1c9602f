import { eq } from "drizzle-orm";
import type { App } from "#app.ts";
import { metricsOf } from "#platform/http/metrics.ts";
import type { Db } from "#storage/db/open.ts";
import { auditEntries } from "#storage/db/schema.ts";

/** Rows or objects that a step deleted, by tenant. */
export type Deleted = ReadonlyMap<number, number>;

type Entry = { id: number; deleted: number };

/**
 * Deletes in steps, each in a transaction of its own, and writes one audit entry per tenant: with the tenant's first step,
 * and updated with the later ones. `task` names the run, `what` what it deletes.
 */
export function auditedSteps(app: App, task: string, what: "sources" | "analytics_rows") {
  const entries = new Map<number, Entry>();
  return {
    async step(work: (tx: Db) => Promise<Deleted>): Promise<void> {
      const done = await app.write(async (tx) => {
        const written: [tenantId: number, entry: Entry][] = [];
        for (const [tenantId, count] of await work(tx)) {
          if (count === 0) continue;
          const earlier = entries.get(tenantId);
          const deleted = (earlier?.deleted ?? 0) + count;
          const id = await put(tx, app, { id: earlier?.id, tenantId, task, fields: [`${what}=${deleted}`] });
          written.push([tenantId, { id, deleted }]);
        }
        return written;
      });
      let count = 0;
      for (const [tenantId, entry] of done) {
        count += entry.deleted - (entries.get(tenantId)?.deleted ?? 0);
        entries.set(tenantId, entry);
      }
      metricsOf(app).scheduledDeletions.add(what, count);
    },
    /** Deleted so far, of all tenants. */
    total: () => [...entries.values()].reduce((sum, { deleted }) => sum + deleted, 0),
  };
}

type NewEntry = { id: number | undefined; tenantId: number; task: string; fields: string[] };

async function put(tx: Db, app: App, { id, tenantId, task, fields }: NewEntry): Promise<number> {
  if (id !== undefined) {
    await tx.update(auditEntries).set({ fields }).where(eq(auditEntries.id, id));
    return id;
  }
  const entry = await tx
    .insert(auditEntries)
    .values({
      actorName: "system",
      action: task,
      createdAt: app.clock.now(),
      actor: "system",
      tenantId,
      address: "",
      method: "",
      route: task,
      targetType: "tenants",
      targetId: String(tenantId),
      fields,
      requestId: "",
    })
    .returning({ id: auditEntries.id })
    .get();
  return entry.id;
}

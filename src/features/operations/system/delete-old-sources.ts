import { and, asc, eq, gt, inArray, isNotNull, isNull, lte, or } from "drizzle-orm";
import type { App } from "#app.ts";
import { removeSource, whySourceIsNeeded } from "#features/transcoding/delete-source.ts";
import { backgroundPacer } from "#lib/base";
import { pagesOf } from "#storage/db/pages.ts";
import { assets, type TenantRow, tenants } from "#storage/db/schema.ts";
import { auditedSteps } from "./retention-audit.ts";

const DAY_MS = 86_400_000;
const TENANTS_AT_ONCE = 100;
/** Assets of one transaction, so that other writers do not wait. */
const BATCH = 10;

/** Deletes the sources of assets that became ready longer ago than their tenant keeps sources. */
export async function deleteOldSources(app: App): Promise<void> {
  const steps = auditedSteps(app, "delete-old-sources", "sources");
  const read = (after: number) =>
    app.db
      .select()
      .from(tenants)
      .where(and(gt(tenants.id, after), isNotNull(tenants.deleteSourcesAfterDays)))
      .orderBy(asc(tenants.id))
      .limit(TENANTS_AT_ONCE)
      .all();
  for await (const page of pagesOf({ from: 0, limit: TENANTS_AT_ONCE, keyOf: ({ id }: TenantRow) => id }, read))
    for (const tenant of page) await deleteSourcesOf(app, tenant, steps);
  if (steps.total() > 0) app.log.info({ sources: steps.total() }, "deleted sources past their retention");
}

async function deleteSourcesOf(app: App, tenant: TenantRow, { step }: ReturnType<typeof auditedSteps>): Promise<void> {
  const pace = backgroundPacer();
  const until = app.clock.now() - (tenant.deleteSourcesAfterDays as number) * DAY_MS;
  // Sources that are still needed are passed by.
  let last = { readyAt: 0, id: 0 };
  while (!app.stopping.aborted) {
    const page = await app.db
      .select({ id: assets.id, readyAt: assets.readyAt })
      .from(assets)
      .where(
        and(
          eq(assets.tenantId, tenant.id),
          isNull(assets.sourceDeletedAt),
          lte(assets.readyAt, until),
          or(gt(assets.readyAt, last.readyAt), and(eq(assets.readyAt, last.readyAt), gt(assets.id, last.id))),
        ),
      )
      .orderBy(asc(assets.readyAt), asc(assets.id))
      .limit(BATCH)
      .all();
    const end = page.at(-1);
    if (!end) return;
    const ids = page.map(({ id }) => id);
    await step(async (tx) => {
      let deleted = 0;
      for (const asset of await tx.select().from(assets).where(inArray(assets.id, ids)).all()) {
        const isOld = asset.sourceDeletedAt === null && asset.readyAt !== null && asset.readyAt <= until;
        if (!isOld || (await whySourceIsNeeded(tx, asset)) !== null) continue;
        await removeSource(tx, app, asset);
        deleted++;
      }
      return new Map([[tenant.id, deleted]]);
    });
    last = { id: end.id, readyAt: end.readyAt as number };
    await pace();
  }
}

import { sql } from "drizzle-orm";
import type { Db } from "../../../storage/db/open.ts";

const HOUR_MS = 3_600_000;
/** Whole hours since the epoch, in UTC. */
export const hourOf = (ms: number) => Math.floor(ms / HOUR_MS);
export const startOfHour = (hour: number) => hour * HOUR_MS;

type Place = { tenantId: number; assetId: number; at: number };
type Sums = { plays: number; completions: number; watchedMs: number; errors: number };
type Row = (string | number)[];

/** What a chunk of events adds to the sums. All of it is written at once, each sum once. */
export class Deltas {
  readonly #hours = new Map<string, { row: Row; sums: Sums }>();
  readonly #reach = new Map<string, { row: Row; sessions: number }>();
  readonly #viewers: Row[] = [];

  add({ tenantId, assetId, at }: Place, by: Partial<Sums>): void {
    for (const scope of [assetId, 0]) {
      const row = [tenantId, scope, hourOf(at)];
      const { sums } = entry(this.#hours, row, () => ({
        row,
        sums: { plays: 0, completions: 0, watchedMs: 0, errors: 0 },
      }));
      sums.plays += by.plays ?? 0;
      sums.completions += by.completions ?? 0;
      sums.watchedMs += by.watchedMs ?? 0;
      sums.errors += by.errors ?? 0;
    }
  }

  /** One session more (or less) of those played then that came so far. */
  addReach({ assetId, at }: Place, reached: number, by: 1 | -1): void {
    const row = [assetId, hourOf(at), reached];
    entry(this.#reach, row, () => ({ row, sessions: 0 })).sessions += by;
  }

  addViewer({ tenantId, assetId, at }: Place, viewer: string): void {
    for (const scope of [assetId, 0]) this.#viewers.push([tenantId, scope, viewer, hourOf(at)]);
  }

  async save(tx: Db): Promise<void> {
    const hours = [...this.#hours.values()]
      .filter(({ sums }) => sums.plays || sums.completions || sums.watchedMs || sums.errors)
      .map(({ row, sums }) => [...row, sums.plays, sums.completions, sums.watchedMs, sums.errors]);
    if (hours.length > 0)
      await tx.run(sql`
        INSERT INTO analytics_hours (tenant_id, asset_id, hour, plays, completions, watched_ms, errors)
        SELECT value->>0, value->>1, value->>2, value->>3, value->>4, value->>5, value->>6
        FROM json_each(${JSON.stringify(hours)}) WHERE true
        ON CONFLICT DO UPDATE SET plays = plays + excluded.plays, completions = completions + excluded.completions,
          watched_ms = watched_ms + excluded.watched_ms, errors = errors + excluded.errors`);
    const reach = [...this.#reach.values()]
      .filter(({ sessions }) => sessions)
      .map(({ row, sessions }) => [...row, sessions]);
    if (reach.length > 0)
      await tx.run(sql`
        INSERT INTO analytics_reach (asset_id, hour, reached, sessions)
        SELECT value->>0, value->>1, value->>2, value->>3 FROM json_each(${JSON.stringify(reach)}) WHERE true
        ON CONFLICT DO UPDATE SET sessions = sessions + excluded.sessions`);
    // The table's trigger keeps `analytics_returns` in step.
    if (this.#viewers.length > 0)
      await tx.run(sql`
        INSERT INTO analytics_viewers (tenant_id, asset_id, viewer, hour)
        SELECT value->>0, value->>1, value->>2, value->>3 FROM json_each(${JSON.stringify(this.#viewers)}) WHERE true
        ON CONFLICT DO NOTHING`);
  }
}

function entry<T>(of: Map<string, T>, key: Row, make: () => T): T {
  const name = key.join();
  const found = of.get(name) ?? make();
  of.set(name, found);
  return found;
}

import { sql } from "drizzle-orm";
import type { Db } from "#storage/db/open.ts";
import { type DayReferrer, OTHER_REFERRERS, refusedReferrers } from "./referrer-limit.ts";

const HOURS_OF_DAY = 24;
export const dayOf = (hour: number) => Math.floor(hour / HOURS_OF_DAY);

type Kind = "country" | "referrer";
type Sums = { plays: number; watchedMs: number };
type Entry = { tenantId: number; assetId: number; hour: number; kind: Kind; value: string; sums: Sums };

/** The increments of sums by country and referrer. */
export class OriginDeltas {
  readonly #entries = new Map<string, Entry>();

  add(at: Pick<Entry, "tenantId" | "assetId" | "hour">, kind: Kind, value: string, by: Partial<Sums>): void {
    if (!by.plays && !by.watchedMs) return;
    const key = `${at.tenantId} ${at.assetId} ${at.hour} ${kind} ${value}`;
    const entry = this.#entries.get(key) ?? { ...at, kind, value, sums: { plays: 0, watchedMs: 0 } };
    this.#entries.set(key, entry);
    entry.sums.plays += by.plays ?? 0;
    entry.sums.watchedMs += by.watchedMs ?? 0;
  }

  /** `hour,asset` of every row is in `analytics_hours` too, by which old rows are found. */
  async save(tx: Db): Promise<void> {
    if (this.#entries.size === 0) return;
    const asked = new Map<string, DayReferrer>();
    for (const { kind, value, tenantId, assetId, hour } of this.#entries.values()) {
      if (kind !== "referrer" || value === "") continue;
      const row = [tenantId, assetId, dayOf(hour), value] as const;
      asked.set(row.join(), row);
    }
    const refused = await refusedReferrers(tx, [...asked.values()]);
    const rows = this.#entries.values().map(({ tenantId, assetId, hour, kind, value, sums }) => {
      const isRefused = kind === "referrer" && refused.has([tenantId, assetId, dayOf(hour), value].join());
      return [tenantId, assetId, hour, kind, isRefused ? OTHER_REFERRERS : value, sums.plays, sums.watchedMs];
    });
    await tx.run(sql`
      INSERT INTO analytics_origins (tenant_id, asset_id, hour, kind, value, plays, watched_ms)
      SELECT value->>0, value->>1, value->>2, value->>3, value->>4, value->>5, value->>6
      FROM json_each(${JSON.stringify([...rows])}) WHERE true
      ON CONFLICT DO UPDATE SET plays = plays + excluded.plays, watched_ms = watched_ms + excluded.watched_ms`);
  }
}

import { sql } from "drizzle-orm";
import type { Db } from "#storage/db/open.ts";
import { minuteOf } from "../tenants/usage.ts";
import type { Device } from "./device.ts";
import { OriginDeltas } from "./origin-deltas.ts";

const HOUR_MS = 3_600_000;
/** Whole hours since the epoch, in UTC. */
export const hourOf = (ms: number) => Math.floor(ms / HOUR_MS);
export const startOfHour = (hour: number) => hour * HOUR_MS;

type SumKey = { tenantId: number; assetId: number; at: number };
type Sums = { plays: number; completions: number; watchedMs: number; errors: number };
/** Also counted by class of device. */
type DeviceSums = Sums & { stalls: number; stalledMs: number };
type Row = (string | number)[];

/** The increments of a chunk of events, written together, each sum once. */
export class Deltas {
  readonly #hours = new Map<string, { row: Row; sums: Sums }>();
  readonly #reach = new Map<string, { row: Row; sessions: number }>();
  readonly #devices = new Map<string, { row: Row; sums: DeviceSums }>();
  readonly #startups = new Map<string, { row: Row; sessions: number }>();
  readonly #viewers: Row[] = [];
  readonly #minutes = new Map<string, { row: Row; sessions: number }>();
  readonly #origins = new OriginDeltas();

  add({ tenantId, assetId, at }: SumKey, by: Partial<Sums>): void {
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

  addForDevice({ tenantId, assetId, at }: SumKey, device: Device, by: Partial<DeviceSums>): void {
    for (const scope of [assetId, 0]) {
      const row = [tenantId, scope, hourOf(at), device];
      const { sums } = entry(this.#devices, row, () => ({
        row,
        sums: { plays: 0, completions: 0, watchedMs: 0, errors: 0, stalls: 0, stalledMs: 0 },
      }));
      for (const [name, value] of Object.entries(by)) sums[name as keyof DeviceSums] += value;
    }
  }

  addForOrigin(
    { tenantId, assetId, at }: SumKey,
    { country, referrer }: { country: string; referrer: string },
    by: Partial<Pick<Sums, "plays" | "watchedMs">>,
  ): void {
    for (const scope of [assetId, 0]) {
      const where = { tenantId, assetId: scope, hour: hourOf(at) };
      this.#origins.add(where, "country", country, by);
      this.#origins.add(where, "referrer", referrer, by);
    }
  }

  /** One session more whose startup time is in `bucket` (startup.ts). */
  addStartup({ tenantId, assetId, at }: SumKey, bucket: number): void {
    for (const scope of [assetId, 0]) {
      const row = [tenantId, scope, hourOf(at), bucket];
      entry(this.#startups, row, () => ({ row, sessions: 0 })).sessions++;
    }
  }

  /** One session more that was seen in this minute. */
  addMinute({ tenantId, at }: Pick<SumKey, "tenantId" | "at">): void {
    const row = [tenantId, minuteOf(at)];
    entry(this.#minutes, row, () => ({ row, sessions: 0 })).sessions++;
  }

  /** One session more (or less) among those played then that reached this position. */
  addReach({ assetId, at }: SumKey, reached: number, by: 1 | -1): void {
    const row = [assetId, hourOf(at), reached];
    entry(this.#reach, row, () => ({ row, sessions: 0 })).sessions += by;
  }

  addViewer({ tenantId, assetId, at }: SumKey, viewer: string): void {
    for (const scope of [assetId, 0]) this.#viewers.push([tenantId, scope, viewer, hourOf(at)]);
  }

  async save(tx: Db): Promise<void> {
    const devices = [...this.#devices.values()].filter(({ sums }) => Object.values(sums).some(Boolean));
    // An hour with details has a row of sums too: queries and the deletion of old rows find hours by them.
    const detailed = new Set([...devices, ...this.#startups.values()].map(({ row }) => row.slice(0, 3).join()));
    const hours = [...this.#hours.values()]
      .filter(({ row, sums }) => Object.values(sums).some(Boolean) || detailed.has(row.join()))
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
    const deviceRows = devices.map(({ row, sums }) => [
      ...row,
      ...[sums.plays, sums.completions, sums.watchedMs, sums.errors, sums.stalls, sums.stalledMs],
    ]);
    if (devices.length > 0)
      await tx.run(sql`
        INSERT INTO analytics_devices (tenant_id, asset_id, hour, device, plays, completions, watched_ms, errors, stalls,
          stalled_ms)
        SELECT value->>0, value->>1, value->>2, value->>3, value->>4, value->>5, value->>6, value->>7, value->>8, value->>9
        FROM json_each(${JSON.stringify(deviceRows)}) WHERE true
        ON CONFLICT DO UPDATE SET plays = plays + excluded.plays, completions = completions + excluded.completions,
          watched_ms = watched_ms + excluded.watched_ms, errors = errors + excluded.errors,
          stalls = stalls + excluded.stalls, stalled_ms = stalled_ms + excluded.stalled_ms`);
    const startups = [...this.#startups.values()].map(({ row, sessions }) => [...row, sessions]);
    if (startups.length > 0)
      await tx.run(sql`
        INSERT INTO analytics_startups (tenant_id, asset_id, hour, bucket, sessions)
        SELECT value->>0, value->>1, value->>2, value->>3, value->>4 FROM json_each(${JSON.stringify(startups)}) WHERE true
        ON CONFLICT DO UPDATE SET sessions = sessions + excluded.sessions`);
    await this.#origins.save(tx);
    const minutes = [...this.#minutes.values()].map(({ row, sessions }) => [...row, sessions]);
    if (minutes.length > 0)
      await tx.run(sql`
        INSERT INTO analytics_minutes (tenant_id, minute, sessions)
        SELECT value->>0, value->>1, value->>2 FROM json_each(${JSON.stringify(minutes)}) WHERE true
        ON CONFLICT DO UPDATE SET sessions = sessions + excluded.sessions`);
    // The table's trigger keeps `analytics_returns` up to date.
    if (this.#viewers.length > 0)
      await tx.run(sql`
        INSERT INTO analytics_viewers (tenant_id, asset_id, viewer, hour)
        SELECT value->>0, value->>1, value->>2, value->>3 FROM json_each(${JSON.stringify(this.#viewers)}) WHERE true
        ON CONFLICT DO NOTHING`);
  }
}

function entry<T>(of: Map<string, T>, key: Row, make: () => T): T {
  const name = key.join();
  const sum = of.get(name) ?? make();
  of.set(name, sum);
  return sum;
}

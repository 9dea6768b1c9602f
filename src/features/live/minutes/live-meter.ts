import { sql } from "drizzle-orm";
import { type App, forApp } from "#app.ts";
import { keptTenants } from "#features/tenants/deletion.ts";
import { addLiveTime, minuteOf, startOfMinute } from "#features/tenants/usage.ts";
import { monthOf } from "#lib/base";
import type { PartEvent } from "#live/playlists/events.ts";
import type { Db } from "#storage/db/open.ts";
import { type LiveStream, viewersOf } from "../registry.ts";

/** What is added to a row of `live_minutes`; `viewers` are the most at once. `speechMs` is only added to the tenant's usage. */
type Minute = {
  tenantId: number;
  channelId: number;
  minute: number;
  mediaMs: number;
  speechMs: number;
  bytes: number;
  viewers: number;
};
const NOTHING = { mediaMs: 0, speechMs: 0, bytes: 0, viewers: 0 };

/** Seconds of each track, and milliseconds that are counted of the longest one. */
type Received = { seconds: Map<string, number>; countedMs: number };

/**
 * Counts what this server receives, what of it is recognized as speech, and the viewers of it. Parts are counted in memory and written every few seconds, for
 * all streams in one transaction: a killed server loses what it received since, and counts nothing twice.
 */
export class LiveMeter {
  readonly #app: App;
  readonly #received = new Map<LiveStream, Received>();
  #minutes = new Map<string, Minute>();

  constructor(app: App) {
    this.#app = app;
  }

  /** A part of a running stream of this server. Tracks are of the same time, so the longest one counts. */
  receive(stream: LiveStream, { track, durationSeconds, bytes }: PartEvent): void {
    const received = this.#received.get(stream) ?? { seconds: new Map(), countedMs: 0 };
    this.#received.set(stream, received);
    received.seconds.set(track, (received.seconds.get(track) ?? 0) + durationSeconds);
    const mediaMs = Math.max(0, Math.floor(Math.max(...received.seconds.values()) * 1000) - received.countedMs);
    received.countedMs += mediaMs;
    this.#add({ ...this.#key(stream), ...NOTHING, mediaMs, bytes });
  }

  /** Speech of a running stream of this server was recognized in one language; whole milliseconds. */
  recognize(stream: LiveStream, speechMs: number): void {
    this.#add({ ...this.#key(stream), ...NOTHING, speechMs });
  }

  /** Counts the viewers of all streams, and writes what was counted since the last time. */
  async flush(): Promise<void> {
    for (const stream of this.#received.keys()) {
      if (stream.endedAt !== null) this.#received.delete(stream);
      else this.#add({ ...this.#key(stream), ...NOTHING, viewers: viewersOf(stream, this.#app.clock.now()) });
    }
    if (this.#minutes.size === 0) return;
    const counted = this.#minutes;
    this.#minutes = new Map();
    try {
      await this.#app.write((tx) => save(tx, [...counted.values()]));
    } catch (error) {
      // They are written the next time.
      for (const minute of counted.values()) this.#add(minute);
      throw error;
    }
  }

  #key({ tenantId, channelId }: LiveStream) {
    return { tenantId, channelId, minute: minuteOf(this.#app.clock.now()) };
  }

  #add(by: Minute): void {
    const key = `${by.channelId} ${by.minute}`;
    const known = this.#minutes.get(key);
    if (!known) return void this.#minutes.set(key, { ...by });
    known.mediaMs += by.mediaMs;
    known.speechMs += by.speechMs;
    known.bytes += by.bytes;
    known.viewers = Math.max(known.viewers, by.viewers);
  }
}

async function save(tx: Db, minutes: readonly Minute[]): Promise<void> {
  const tenants = await keptTenants(
    tx,
    minutes.map(({ tenantId }) => tenantId),
  );
  // The rows have no foreign key, and those of a deleted tenant would be left.
  const kept = minutes.filter(({ tenantId }) => tenants.has(tenantId));
  const rows = kept.map((one) => [one.tenantId, one.channelId, one.minute, one.mediaMs, one.bytes, one.viewers]);
  await tx.run(sql`
    INSERT INTO live_minutes (tenant_id, channel_id, minute, media_ms, bytes, viewers)
    SELECT value->>0, value->>1, value->>2, value->>3, value->>4, value->>5 FROM json_each(${JSON.stringify(rows)})
    WHERE true
    ON CONFLICT DO UPDATE SET media_ms = media_ms + excluded.media_ms, bytes = bytes + excluded.bytes,
      viewers = max(viewers, excluded.viewers)`);
  const used = kept.filter(({ mediaMs, speechMs }) => mediaMs > 0 || speechMs > 0);
  if (used.length > 0) await addLiveTime(tx, used.map(liveTimeOf));
}

const liveTimeOf = ({ tenantId, minute, mediaMs, speechMs }: Minute) => ({
  tenantId,
  monthStart: monthOf(startOfMinute(minute)),
  liveMs: mediaMs,
  transcodingMs: speechMs,
});

export const liveMeter = forApp((app) => new LiveMeter(app));

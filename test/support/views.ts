import type { TestApp } from "./app.ts";
import type { Random } from "./crash/random.ts";
import { typedClient } from "./typed-client.ts";

export const HOUR = 3_600_000;
export type Told = {
  asset_id: number;
  session_id: string;
  viewer_id?: string;
  event: string;
  position_seconds?: number;
  watched_seconds?: number;
  occurred_at: string;
};

type Session = {
  asset: number;
  playedAt: number;
  viewer: string;
  events: Told[];
  durationSeconds: number;
};

/** The expected summaries, counted from the events themselves in the order in which they were sent, each once. */
export class Oracle {
  readonly #told: Told[] = [];
  readonly #seen = new Set<string>();
  readonly #known = new Map<string, { times: number[]; told: Told[]; sessions: Session[] }>();
  readonly #durations: Map<number, number>;
  constructor(durations: Map<number, number>) {
    this.#durations = durations;
  }

  tell(event: Told): void {
    const key = JSON.stringify([
      event.asset_id,
      event.session_id,
      event.event,
      event.position_seconds,
      event.occurred_at,
    ]);
    if (this.#seen.has(key)) return;
    this.#seen.add(key);
    this.#told.push(event);
    this.#known.clear();
  }

  /** The events of some assets, and their sessions: scanned once, queried hundreds of times. */
  #of(assets: ReadonlySet<number>): { times: number[]; told: Told[]; sessions: Session[] } {
    const key = [...assets].join();
    const known = this.#known.get(key);
    if (known) return known;
    const told = this.#told.filter((event) => assets.has(event.asset_id));
    const found = { told, times: told.map((event) => Date.parse(event.occurred_at)), sessions: this.#sessions(told) };
    this.#known.set(key, found);
    return found;
  }

  /** Over whole hours, from that of `from` to the last one that begins before `to`. */
  summary(assets: ReadonlySet<number>, from: number, to: number) {
    const isIn = (ms: number) => ms >= Math.floor(from / HOUR) * HOUR && ms < Math.ceil(to / HOUR) * HOUR;
    const { told, times, sessions } = this.#of(assets);
    const plays = sessions.filter(({ playedAt }) => isIn(playedAt));
    const watched = told.filter((_, index) => isIn(times[index] as number));
    const seconds = watched.reduce((sum, event) => sum + (event.watched_seconds ?? 0), 0);
    const complete = plays.filter(isComplete).length;
    return {
      play_count: plays.length,
      unique_viewers: new Set(plays.map(({ viewer }) => viewer)).size,
      watch_time_seconds: Math.round(seconds * 1000) / 1000,
      completion_rate: plays.length === 0 ? 0 : complete / plays.length,
      average_watch_seconds: plays.length === 0 ? 0 : Math.round(seconds * 1000) / 1000 / plays.length,
      error_count: watched.filter(({ event }) => event === "error").length,
    };
  }

  /** Sessions of an asset that reached a hundredth. */
  reached(asset: number, from: number, to: number, hundredth: number): number {
    return this.#of(new Set([asset]))
      .sessions.filter(
        ({ playedAt }) => playedAt >= Math.floor(from / HOUR) * HOUR && playedAt < Math.ceil(to / HOUR) * HOUR,
      )
      .filter((session) => Math.floor(furthest(session) * 100) >= hundredth).length;
  }

  #sessions(told: Told[]): Session[] {
    const groups = Map.groupBy(told, (event) => `${event.asset_id} ${event.session_id}`);
    return [...groups.values()].flatMap((events) => {
      const play = events.find(({ event }) => event === "play");
      if (!play) return [];
      const durationSeconds = this.#durations.get(play.asset_id) as number;
      const viewer = play.viewer_id ?? `session ${play.session_id}`;
      return [{ asset: play.asset_id, playedAt: Date.parse(play.occurred_at), viewer, events, durationSeconds }];
    });
  }
}

const furthest = ({ events, durationSeconds }: Session) =>
  Math.max(
    0,
    ...events
      .filter(({ event }) => event !== "seeking" && event !== "seeked")
      .map(({ event, position_seconds: at }) => (at === undefined ? Number(event === "ended") : at / durationSeconds)),
  );
const isComplete = (session: Session) => furthest(session) >= 0.9;

/** A view as a player reports it, with gaps: some events are lost. Times are in the day before `now`. */
export function randomView(random: Random, assets: readonly { id: number; seconds: number }[], now: number): Told[] {
  const { id, seconds } = assets[random.whole(0, assets.length - 1)] as { id: number; seconds: number };
  const session_id = `s${random.whole(1, 1_000_000_000_000)}`;
  const viewer = random.chance(0.8) ? { viewer_id: `v${random.whole(1, 40)}` } : {};
  // In the past: an event ahead of the server's clock counts as of now, which may be another hour.
  const start = now - random.whole(Math.ceil(seconds) + 1, 22 * 3600) * 1000;
  const events: Told[] = [];
  let elapsed = 0;
  const tell = (event: string, fields: Partial<Told> = {}) => {
    const occurred_at = new Date(start + elapsed * 1000).toISOString();
    if (random.chance(0.95)) events.push({ asset_id: id, session_id, ...viewer, event, occurred_at, ...fields });
  };
  tell("play", { position_seconds: 0 });
  const until = random.chance(0.4) ? seconds : random.whole(0, seconds);
  while (elapsed < until) {
    const step = Math.min(10, until - elapsed);
    elapsed += step;
    if (random.chance(0.1)) tell("seeked", { position_seconds: random.whole(0, seconds) });
    if (random.chance(0.05)) tell("error");
    tell("heartbeat", { position_seconds: elapsed, watched_seconds: random.chance(0.1) ? step - 0.25 : step });
  }
  if (elapsed >= seconds) tell("ended", random.chance(0.5) ? { position_seconds: seconds } : {});
  return events;
}

/** An asset of a known duration that needs no media. */
export async function film({ call, admin }: Pick<TestApp, "call" | "admin">, tenantId: number, seconds = 100) {
  const made = await typedClient(call)({ admin }).createAsset({
    tenant_id: tenantId,
    video_asset: {
      title: "Film",
      input_status: "uploaded",
      playback_status: "ready",
      // With signed playback nothing is counted without a token.
      playback_policy: "public",
      source_bytes: 1,
      storage_bytes: 1,
      duration_seconds: seconds,
      source_key: `tenants/${tenantId}/sources/x.mp4`,
    },
  });
  if (made.status !== 201) throw new Error(made.text);
  return { ...(made.body.asset as { id: number; external_id: string }), seconds };
}

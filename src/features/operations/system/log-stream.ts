import { type App, forApp } from "#app.ts";
import { type NumberedLine, setInterval } from "#lib/base";
import { type SentEvents, sentEvent } from "#platform/http/server-sent-events.ts";

/** How often new lines are sent. */
const TICK_MS = 500;
/** Ticks between two comments, which keep the connection open, and two checks of the credential. */
const COMMENT_TICKS = 20;
/** Lines that a new stream begins with. */
const FIRST_LINES = 200;
/** Lines of one tick; older ones are skipped. */
const MAX_LINES = 500;
/** Lines that processes share with each other. */
const SHARED_LINES = 500;
export const MAX_LOG_STREAMS = 20;

export const LOG_LEVELS = ["debug", "info", "warn", "error", "fatal"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** What one process logged since its start, up to now; its newest lines. */
type Source = { slot: number; startedAt: number; lines: NumberedLine[] };
type Line = { level: LogLevel; time: string };
/** `sent`: the number of the last line by the start of its process. */
type Viewer = { events: SentEvents; level: LogLevel; sent: Map<string, number> };

const nameOf = (slot: number) => `log.${slot}`;

/** Sends what this server logs to the operators who look at it. Without them nothing is done. */
class LogStream {
  readonly #app: App;
  readonly #viewers = new Set<Viewer>();
  #timer: NodeJS.Timeout | undefined;
  #ticks = 0;
  #shared = 0;

  constructor(app: App) {
    this.#app = app;
  }

  get size(): number {
    return this.#viewers.size;
  }

  /** Adds a stream, which begins with the newest lines, and returns the function that removes it. */
  add(events: SentEvents, level: LogLevel): () => void {
    const viewer = { events, level, sent: new Map<string, number>() };
    this.#viewers.add(viewer);
    void this.#sources(Number.POSITIVE_INFINITY).then((sources) => send(viewer, sources, FIRST_LINES));
    this.#timer ??= setInterval(() => void this.#tick(), TICK_MS).unref();
    return () => {
      this.#viewers.delete(viewer);
      if (this.#viewers.size > 0) return;
      clearInterval(this.#timer);
      this.#timer = undefined;
    };
  }

  /** Scheduled task: lets the other processes read what this one logged. */
  async share(): Promise<void> {
    const { peers, recentLines } = this.#app;
    if (!peers || recentLines.last === this.#shared) return;
    this.#shared = recentLines.last;
    await peers.post(nameOf(peers.slot), this.#own(SHARED_LINES));
  }

  #own(limit: number, slot = this.#app.peers?.slot ?? 0): Source {
    const lines = this.#app.recentLines.after(0, limit);
    return { slot, startedAt: Math.round(performance.timeOrigin), lines };
  }

  async #tick(): Promise<void> {
    const sources = await this.#sources(MAX_LINES);
    for (const viewer of this.#viewers) send(viewer, sources, MAX_LINES);
    if (++this.#ticks % COMMENT_TICKS !== 0) return;
    for (const { events } of this.#viewers) {
      events.comment();
      await events.recheck();
    }
  }

  /** The newest lines of every process; at most `limit` of this one. */
  async #sources(limit: number): Promise<Source[]> {
    const { peers, config } = this.#app;
    const slots = peers ? Array.from({ length: config.processes }, (_, slot) => slot) : [];
    const others = slots.filter((slot) => slot !== peers?.slot);
    const posted = await Promise.all(others.map((slot) => peers?.posted(nameOf(slot)) as Promise<Source | undefined>));
    return [this.#own(limit), ...posted.filter((source) => source !== undefined)];
  }
}

function send(viewer: Viewer, sources: Source[], limit: number): void {
  const lines = sources.flatMap((source) => newLines(viewer, source)).sort((a, b) => (a.time < b.time ? -1 : 1));
  for (const line of lines.slice(-limit)) viewer.events.send(sentEvent({ event: "line", data: line }));
}

/** Lines of the viewer's level and above that were not sent yet. */
function newLines({ sent, level }: Viewer, { slot, startedAt, lines }: Source): Line[] {
  const key = `${slot} ${startedAt}`;
  const after = sent.get(key) ?? 0;
  sent.set(key, Math.max(after, lines.at(-1)?.number ?? 0));
  return lines
    .filter(({ number }) => number > after)
    .map(({ text }) => JSON.parse(text) as Line)
    .filter((line) => LOG_LEVELS.indexOf(line.level) >= LOG_LEVELS.indexOf(level));
}

export const logStreamOf = forApp((app) => new LogStream(app));

import { and, eq, lt } from "drizzle-orm";
import { type App, forApp } from "#app.ts";
import { setTimeout } from "#lib/base";
import { keptSeconds } from "#live/ingest/segment-list.ts";
import { liveReports } from "#storage/db/schema.ts";
import type { LiveStream } from "../registry.ts";
import type { StoredReport, StoredState } from "./reports.ts";

/** Reports of all streams in this time are one statement. It adds to the latency of viewers. */
const WRITE_MS = 500;
const STATE_EVERY_SECONDS = 60;
const ROWS_AT_ONCE = 100;

type Row = typeof liveReports.$inferInsert;
type Entry = { report: StoredReport; state: StoredState | null; endSeconds: number };
type Options = Pick<StoredState, "dvrSeconds" | "segmentTargetSeconds">;
type Written = Options & {
  /** Null until the row of the stream exists. */
  id: number | null;
  number: number;
  entries: Entry[];
  /** Reports are written in their order, each after its segment is stored. */
  order: Promise<unknown>;
  stateSeconds: number;
  endSeconds: number;
};

/** Writes what other servers need to deliver the streams that this one receives. Does nothing for other streams. */
export class ReportWriter {
  readonly #app: App;
  readonly #streams = new Map<string, Written>();
  /** Rows that are not in the database yet, with their numbers. */
  readonly #rows: Row[] = [];
  #timer: NodeJS.Timeout | null = null;
  #writing: Promise<void> | null = null;

  constructor(app: App) {
    this.#app = app;
  }

  /** Before its first report. */
  open(name: string, options: Options): void {
    this.#streams.set(name, {
      ...options,
      id: null,
      number: 0,
      entries: [],
      order: Promise.resolve(),
      stateSeconds: Number.NEGATIVE_INFINITY,
      endSeconds: 0,
    });
  }

  /** The row of the stream exists. */
  start(name: string, id: number): void {
    const written = this.#streams.get(name);
    if (written) written.id = id;
    this.#soon();
  }

  /** Called before a report is applied to the timeline: its state, if it is to be written with the report. */
  stateBefore({ name, timeline }: Pick<LiveStream, "name" | "timeline">): StoredState | null {
    const written = this.#streams.get(name);
    if (!written || written.endSeconds - written.stateSeconds < STATE_EVERY_SECONDS) return null;
    written.stateSeconds = written.endSeconds;
    const { dvrSeconds, segmentTargetSeconds } = written;
    return { ...timeline.state(), dvrSeconds, segmentTargetSeconds };
  }

  /** `stored` resolves when the file that the report names is stored. */
  add(name: string, report: StoredReport, options: { state: StoredState | null; stored?: Promise<unknown> }): void {
    const written = this.#streams.get(name);
    if (!written) return;
    if (report.type === "segment") {
      const { startSeconds, durationSeconds } = report.segment;
      written.endSeconds = Math.max(written.endSeconds, startSeconds + durationSeconds);
    }
    const entry = { report, state: options.state, endSeconds: written.endSeconds };
    written.order = Promise.all([written.order, options.stored]).then(() => {
      written.entries.push(entry);
      this.#soon();
    });
  }

  /** The stream has no row, and gets none. */
  drop(name: string): void {
    this.#streams.delete(name);
  }

  /** Resolves when all reports are written whose files are stored, or cannot be written now. */
  async idle(): Promise<void> {
    await Promise.all([...this.#streams.values()].map(({ order }) => order));
    await this.#write();
  }

  #soon(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = null;
      void this.#write();
    }, WRITE_MS).unref();
  }

  #write(): Promise<void> {
    this.#writing ??= this.#flush()
      .catch((error) => {
        this.#app.log.warn({ err: error }, "other servers cannot read live streams yet");
        this.#soon();
      })
      .finally(() => {
        this.#writing = null;
        const isMore = [...this.#streams.values()].some(({ id, entries }) => id !== null && entries.length > 0);
        if (isMore) this.#soon();
      });
    return this.#writing;
  }

  async #flush(): Promise<void> {
    for (const [name, written] of this.#streams) {
      if (written.id === null) continue;
      const entries = written.entries.splice(0);
      this.#rows.push(...rowsOf(entries, written, written.id));
      if (entries.some(({ report }) => report.type === "ended")) this.#streams.delete(name);
    }
    for (let rows = this.#rows.slice(0, ROWS_AT_ONCE); rows.length > 0; rows = this.#rows.slice(0, ROWS_AT_ONCE)) {
      await this.#app.write(async (tx) => {
        // A write that is repeated may have succeeded.
        await tx.insert(liveReports).values(rows).onConflictDoNothing();
        for (const { streamId, endSeconds, state } of rows) {
          if (!state) continue;
          const { dvrSeconds } = JSON.parse(state) as StoredState;
          const oldest = endSeconds - keptSeconds(dvrSeconds) - 2 * STATE_EVERY_SECONDS;
          await tx
            .delete(liveReports)
            .where(and(eq(liveReports.streamId, streamId), lt(liveReports.endSeconds, oldest)));
        }
      });
      this.#rows.splice(0, rows.length);
    }
  }
}

/** A state is that before the first report of its row. */
function rowsOf(entries: readonly Entry[], written: Written, streamId: number): Row[] {
  const groups: Entry[][] = [];
  for (const entry of entries) {
    const group = groups.at(-1);
    if (group && !entry.state) group.push(entry);
    else groups.push([entry]);
  }
  return groups.map((group) => ({
    streamId,
    number: ++written.number,
    endSeconds: Math.max(...group.map(({ endSeconds }) => endSeconds)),
    state: group[0]?.state ? JSON.stringify(group[0].state) : null,
    reports: JSON.stringify(group.map(({ report }) => report)),
  }));
}

export const reportWriter = forApp((app) => new ReportWriter(app));

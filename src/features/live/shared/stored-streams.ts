import { and, asc, desc, eq, gt, isNotNull, lte } from "drizzle-orm";
import { type App, forApp } from "#app.ts";
import { pacer, sleep } from "#lib/base";
import { LiveCaptions } from "#live/captions/live-captions.ts";
import { keptSeconds } from "#live/ingest/segment-list.ts";
import { LiveTimeline } from "#live/playlists/timeline.ts";
import { ViewerCount } from "#live/playlists/viewer-count.ts";
import { type LiveStreamRow, liveReports, liveStreams } from "#storage/db/schema.ts";
import { lastStreamOf, streamNamed } from "../last-stream.ts";
import { LIVE_PLAYLIST, type LiveStream } from "../registry.ts";
import { applyReport, type StoredReport, type StoredState } from "./reports.ts";
import { LINGER_MS, sharesStreams } from "./server.ts";

/** A stream that another server receives. Its segments are objects, and its playlists have no parts. */
export type StoredStream = Omit<LiveStream, "folder" | "channel" | "viewersElsewhere"> & {
  /** The prefix of its objects: `<track>/init.mp4`, `<track>/00001.m4s`. */
  prefix: string;
};

/** How often reports are read. It adds to the latency of viewers. */
const READ_MS = 1000;
/** Without requests for so long, a stream is not read any more. */
const UNUSED_MS = 60_000;
/** Without a report for so long: has the stream ended without a last one? */
const SILENT_MS = 10_000;
const PAGE = 500;

type Followed = {
  row: LiveStreamRow;
  prefix: string;
  /** Null while it has no report. */
  stream: StoredStream | null;
  /** The number of the last row that was read. */
  number: number;
  reportedAt: number;
  usedAt: number;
  /** Resolves when it was read for the first time. */
  first: Promise<void>;
};

/** The streams of other servers that viewers of this one watch: each is read once a second, whatever their number. */
export class StoredStreams {
  readonly #app: App;
  readonly #followed = new Map<string, Followed>();

  constructor(app: App) {
    this.#app = app;
  }

  /** The running ones that viewers of this server watch. */
  *running(): Generator<StoredStream> {
    for (const { stream } of this.#followed.values()) if (stream?.endedAt === null) yield stream;
  }

  /** The running stream of a channel. Undefined when there is none, or none of its segments is stored yet. */
  async ofChannel(channelId: number): Promise<StoredStream | undefined> {
    if (!sharesStreams(this.#app)) return undefined;
    const row = await lastStreamOf(this.#app, channelId);
    return row?.endedAt === null ? this.#follow(row) : undefined;
  }

  /** A stream that runs, or has ended a moment ago. */
  async byName(channelId: number, name: string): Promise<StoredStream | undefined> {
    if (!sharesStreams(this.#app)) return undefined;
    const row = this.#followed.get(name)?.row ?? (await streamNamed(this.#app, name));
    if (row?.channelId !== channelId) return undefined;
    return this.#isOver(row) ? undefined : this.#follow(row);
  }

  /** Viewers of the running stream of a channel, of this server. */
  viewersOf(channelId: number): number {
    const stream = this.running().find((one) => one.channelId === channelId);
    return stream ? stream.viewers.count(this.#app.clock.now()) : 0;
  }

  async #follow(row: LiveStreamRow): Promise<StoredStream | undefined> {
    if (row.prefix === null) return undefined;
    const followed = this.#followed.get(row.name) ?? this.#begin(row, row.prefix);
    followed.usedAt = performance.now();
    await followed.first;
    return followed.stream ?? undefined;
  }

  #begin(row: LiveStreamRow, prefix: string): Followed {
    const now = performance.now();
    const { promise: first, resolve, reject } = Promise.withResolvers<void>();
    // Those who wait for it throw it.
    first.catch(() => {});
    const followed: Followed = { row, prefix, stream: null, number: 0, reportedAt: now, usedAt: now, first };
    this.#followed.set(row.name, followed);
    void this.#keepReading(followed, { resolve, reject }).finally(() => this.#followed.delete(row.name));
    return followed;
  }

  async #keepReading(
    followed: Followed,
    { resolve, reject }: { resolve: () => void; reject: (error: unknown) => void },
  ): Promise<void> {
    while (!this.#app.stopping.aborted) {
      try {
        await this.#read(followed);
        resolve();
      } catch (error) {
        this.#app.log.warn({ err: error, stream: followed.row.name }, "a live stream of another server cannot be read");
        reject(error);
        // What it has is delivered while the database does not answer.
        if (followed.stream === null || error instanceof RangeError) return;
      }
      if (performance.now() - followed.usedAt > UNUSED_MS || this.#isOver(followed.row)) return;
      await sleep(READ_MS, undefined, { ref: false });
    }
  }

  #isOver({ endedAt }: LiveStreamRow): boolean {
    return endedAt !== null && Math.abs(this.#app.clock.now() - endedAt) > LINGER_MS;
  }

  async #read(followed: Followed): Promise<void> {
    followed.stream ??= await this.#start(followed);
    const { stream } = followed;
    if (!stream || stream.endedAt !== null) return;
    const pace = pacer();
    for (let isMore = true; isMore; await pace()) {
      const rows = await this.#app.db
        .select({ number: liveReports.number, reports: liveReports.reports })
        .from(liveReports)
        .where(and(eq(liveReports.streamId, followed.row.id), gt(liveReports.number, followed.number)))
        .orderBy(asc(liveReports.number))
        .limit(PAGE)
        .all();
      for (const { number, reports } of rows) {
        followed.number = number;
        followed.reportedAt = performance.now();
        for (const report of JSON.parse(reports) as StoredReport[])
          if (report.type === "ended") end(followed, stream, report.endedAtMs);
          else applyReport(stream, report);
      }
      isMore = rows.length === PAGE;
    }
    if (stream.endedAt === null && performance.now() - followed.reportedAt > SILENT_MS)
      await this.#endWithRow(followed, stream);
  }

  /** The server that received it was killed, and has not reported the end. */
  async #endWithRow(followed: Followed, stream: StoredStream): Promise<void> {
    const row = await this.#app.db.select().from(liveStreams).where(eq(liveStreams.id, followed.row.id)).get();
    // It is deleted with its channel.
    const endedAt = row ? row.endedAt : this.#app.clock.now();
    if (endedAt !== null) end(followed, stream, endedAt);
  }

  /** From the beginning of what a playlist may list. Null when there is no report yet. */
  async #start(followed: Followed): Promise<StoredStream | null> {
    const { row, prefix } = followed;
    const states = (until: number) =>
      this.#app.db
        .select()
        .from(liveReports)
        .where(and(eq(liveReports.streamId, row.id), isNotNull(liveReports.state), lte(liveReports.endSeconds, until)));
    const last = await states(Number.MAX_SAFE_INTEGER).orderBy(desc(liveReports.number)).limit(1).get();
    if (!last?.state) return null;
    const { dvrSeconds, segmentTargetSeconds } = JSON.parse(last.state) as StoredState;
    const from = last.endSeconds - keptSeconds(dvrSeconds);
    const first =
      (await states(from).orderBy(desc(liveReports.number)).limit(1).get()) ??
      (await states(Number.MAX_SAFE_INTEGER).orderBy(asc(liveReports.number)).limit(1).get());
    if (!first?.state) return null;
    followed.number = first.number - 1;
    const captions = new LiveCaptions();
    const timeline = new LiveTimeline({
      captions,
      startedAtMs: row.startedAt,
      dvrSeconds,
      isLowLatency: false,
      playlistName: LIVE_PLAYLIST,
      // Without low latency there are no parts.
      segmentTargetSeconds,
      partTargetSeconds: segmentTargetSeconds,
      state: JSON.parse(first.state) as StoredState,
    });
    const { name, tenantId, channelId, startedAt } = row;
    const counted = { viewers: new ViewerCount(), health: null };
    return { name, tenantId, channelId, startedAt, endedAt: null, timeline, captions, prefix, ...counted };
  }
}

function end(followed: Followed, stream: StoredStream, endedAt: number): void {
  stream.timeline.ended();
  stream.endedAt = endedAt;
  followed.row = { ...followed.row, endedAt };
}

export const storedStreams = forApp((app) => new StoredStreams(app));

import { readdir, rm } from "node:fs/promises";
import { basename, join } from "node:path";
import { isNull } from "drizzle-orm";
import { type App, forApp } from "#app.ts";
import { HttpError, setInterval, setTimeout } from "#lib/base";
import { refusalText } from "#lib/rtmp";
import type {
  FinishedRecording,
  FromIngest,
  FromIngestOf,
  OpenedStream,
  ToIngest,
  ToIngestOf,
  WantedClip,
} from "#live/ingest/messages.ts";
import { TAKEN_OVER } from "#live/ingest/publisher.ts";
import type { RenditionReport } from "#live/renditions/messages.ts";
import { INIT_NAME } from "#media/arguments.ts";
import { type LiveStreamRow, liveStreams as rows } from "#storage/db/schema.ts";
import { liveMeter } from "../minutes/live-meter.ts";
import { type LiveStream, liveRegistry } from "../registry.ts";
import { type ReportWriter, reportWriter } from "../shared/report-writer.ts";
import { applyReport, fileOf, type StreamReport } from "../shared/reports.ts";
import { HEARTBEAT_MS, LINGER_MS, serverIdOf, sharesStreams } from "../shared/server.ts";
import { simulcastReports } from "../simulcast/reports.ts";
import { TargetSync } from "../simulcast/sync.ts";
import { liveFolder, newClipFolder } from "./folders.ts";
import { isEncoded, lastWrite } from "./killed-stream.ts";
import { newStream } from "./opened-stream.ts";
import { permitPublish } from "./permit.ts";
import { NOT_ACCEPTED, unwantedStreams } from "./reason-to-end.ts";
import { StoredRecording } from "./recording.ts";
import {
  claimStream,
  endStream,
  finishStream,
  insertStream,
  interruptStream,
  isTakenOver,
  renewStreams,
  streamWithChannel,
} from "./rows.ts";
import { readStoredMedia } from "./stored-media.ts";
import { StreamWork } from "./stream-work.ts";

const RECORDING = ".recording";
/** What another server has stored of a stream. */
const STORED = ".stored";
const NOT_RENEWED = "The server was disconnected for too long, and the stream has ended. Publish again.";
const CLIP_MS = 10_000;
const WATCH_MS = 2000;

/** What every process of a server that serves a stream has to know. */
export type ReplicatedMessage = StreamReport | RenditionReport | FromIngestOf<"opened" | "simulcast">;
type StreamMessage = Exclude<FromIngest, FromIngestOf<"ready" | "failed" | "log" | "whip">>;

/**
 * The streams that the ingest process of this server reports: their playlists in memory, their rows and recordings. One
 * failure of a database or a store delays a stream; it does not end it.
 */
export class LiveStreams {
  readonly #app: App;
  readonly #recordings = new Map<string, StoredRecording>();
  readonly #work: StreamWork;
  readonly #clips = new Map<string, (made: FinishedRecording | null | undefined) => void>();
  readonly #reports: ReportWriter;
  readonly #targets: TargetSync;
  /** Streams whose rows this process completes. */
  readonly #unfinished = new Set<string>();
  #send: (message: ToIngest) => void = () => {};
  #isConnected = false;
  #recovered: Promise<void> = Promise.resolve();
  #timers: NodeJS.Timeout[] = [];

  constructor(app: App) {
    this.#app = app;
    this.#work = new StreamWork(app);
    this.#reports = reportWriter(app);
    this.#targets = new TargetSync(app, (message) => this.#send(message));
  }

  /** The ingest process has started: what the one before it, or the server before this one, has left is completed. */
  async connected(send: (message: ToIngest) => void): Promise<void> {
    this.#send = send;
    this.#isConnected = true;
    if (this.#timers.length === 0)
      this.#timers = [
        setInterval(() => this.channelsChanged(), WATCH_MS).unref(),
        setInterval(() => this.targetsChanged(), WATCH_MS).unref(),
        setInterval(() => void this.#renew(), HEARTBEAT_MS).unref(),
      ];
    const recovery = this.#recover();
    this.#recovered = recovery.catch(() => {});
    await recovery;
  }

  /** The ingest process has exited. Its streams wait for the next one, which completes them. */
  disconnected(): void {
    this.#send = () => {};
    this.#isConnected = false;
    for (const resolve of this.#clips.values()) resolve(undefined);
    simulcastReports(this.#app).clear();
    for (const stream of liveRegistry(this.#app).all()) {
      if (stream.endedAt === null) this.#ended(stream, this.#app.clock.now());
    }
  }

  /** Passes changed targets on to the streams of this process. Another process finds them out within two seconds. */
  targetsChanged(): void {
    if (this.#isConnected) void this.#targets.run();
  }

  /** Ends the streams that their channels do not accept any more. Another process finds that out within two seconds. */
  channelsChanged(): void {
    if (this.#isConnected) void this.#stopUnwanted();
  }

  receive(message: StreamMessage): void {
    try {
      this.#receive(message);
    } catch (error) {
      // Whatever one stream reports, the others continue.
      this.#app.log.error({ err: error }, "a live stream was reported incorrectly");
      if ("stream" in message) this.#stop(message.stream, NOT_ACCEPTED);
    }
  }

  /**
   * Copies a part of a running stream, to a directory that the caller deletes. Null when there is no complete segment of
   * that time. Throws 503 when the ingest process does not answer.
   */
  async clip(stream: LiveStream, wanted: WantedClip): Promise<{ folder: string; made: FinishedRecording } | null> {
    const folder = newClipFolder(this.#app, stream.name);
    const clip = basename(folder);
    const { promise, resolve } = Promise.withResolvers<FinishedRecording | null | undefined>();
    const timer = setTimeout(() => resolve(undefined), CLIP_MS);
    this.#clips.set(clip, resolve);
    this.#send({ type: "clip", clip, stream: stream.name, wanted });
    const made = await promise;
    clearTimeout(timer);
    this.#clips.delete(clip);
    if (made === undefined) throw new HttpError(503, "busy", "The stream cannot be read at this time; try again.");
    return made && { folder, made };
  }

  #receive(message: StreamMessage): void {
    switch (message.type) {
      case "question":
        return this.#answer(message);
      case "opened":
        return this.#opened(message.opened);
      case "simulcast":
        return simulcastReports(this.#app).receive(message.report);
      case "clip":
        return this.#clips.get(message.clip)?.(message.made);
      case "finished":
        return this.#finished(message.stream, message.finished);
      default:
        this.#changed(message);
    }
  }

  #answer({ number, publish }: FromIngestOf<"question">): void {
    const answer = (permission: Awaited<ReturnType<typeof permitPublish>>) =>
      this.#send({ type: "answer", number, permission });
    // Streams that the process before has left would be taken for those of another server.
    this.#recovered
      .then(() => permitPublish(this.#app, publish))
      .then(answer, (error) => {
        this.#app.log.error({ err: error }, "a publish could not be authorized");
        answer({ accepted: false, reason: "unavailable" });
      });
  }

  /** Resolves when the rows and recordings of all streams that were reported are complete. */
  async idle(): Promise<void> {
    await this.#work.idle();
    await this.#reports.idle();
    await simulcastReports(this.#app).idle();
  }

  close(): void {
    for (const timer of this.#timers) clearInterval(timer);
  }

  /**
   * Completes the recording of a server that is dead, from what it has stored. Does nothing when another server does it, or
   * in a process that receives no streams.
   */
  async adopt(row: LiveStreamRow): Promise<void> {
    const { name, prefix, tenantId } = row;
    if (!this.#isConnected || prefix === null || this.#unfinished.has(name)) return;
    if (!(await claimStream(this.#app, name, row))) return;
    this.#unfinished.add(name);
    this.#work.add(name, async () => {
      const stored = await readStoredMedia(this.#app, prefix, join(liveFolder(this.#app), name + STORED));
      if (stored.length === 0) return void this.#unfinished.delete(name);
      this.#recordings.set(name, new StoredRecording(this.#app, tenantId, { prefix, stored }));
      // Another encode would need a source, which only the dead server has.
      this.#send({ type: "recover", stream: name, from: name + STORED, isEncoded: false });
    });
  }

  /** The same in a process that does not receive streams: another one completes them. */
  disconnectedReplica(): void {
    simulcastReports(this.#app).clear();
    for (const stream of liveRegistry(this.#app).all())
      if (stream.endedAt === null)
        this.replicate({ type: "ended", stream: stream.name, endedAtMs: this.#app.clock.now() });
  }

  /** In such a process: requests for clips go to the other one. */
  sendClipsBy(send: (message: ToIngestOf<"clip">) => void): void {
    this.#send = (message) => {
      if (message.type === "clip") send(message);
    };
  }

  /** What the process that receives the stream has reported, in another process of the server. */
  replicate(message: ReplicatedMessage): void {
    try {
      this.#replicate(message);
    } catch (error) {
      this.#app.log.error({ err: error }, "a live stream was replicated incorrectly");
    }
  }

  #replicate(message: ReplicatedMessage): void {
    if (message.type === "opened") return void this.#register(message.opened);
    if (message.type === "simulcast") return simulcastReports(this.#app).replicate(message.report);
    const stream = liveRegistry(this.#app).byName(message.stream);
    if (!stream || stream.endedAt !== null) return;
    if (message.type === "ended") {
      this.#over(stream, message.endedAtMs);
      setTimeout(() => liveRegistry(this.#app).remove(stream), LINGER_MS).unref();
    } else applyReport(stream, message);
  }

  #register(opened: OpenedStream): LiveStream {
    const stream = newStream(opened, join(liveFolder(this.#app), opened.name));
    liveRegistry(this.#app).add(stream);
    return stream;
  }

  #opened(opened: OpenedStream): void {
    const { name, channel, segmentTargetSeconds, tracks } = opened;
    const { folder } = this.#register(opened);
    const isShared = sharesStreams(this.#app);
    const recording = channel.record || isShared ? new StoredRecording(this.#app, channel.tenantId) : null;
    if (recording) this.#recordings.set(name, recording);
    if (isShared) {
      this.#reports.open(name, { dvrSeconds: channel.dvrSeconds, segmentTargetSeconds });
      for (const { track } of tracks) void recording?.add(folder, `${track}/${INIT_NAME}`);
    }
    this.#work.add(name, async () => {
      const id = await insertStream(this.#app, opened, recording?.prefix ?? null);
      if (typeof id === "number") {
        this.#unfinished.add(name);
        return this.#reports.start(name, id);
      }
      this.#reports.drop(name);
      this.#stop(name, id === "taken" ? refusalText("taken") : NOT_ACCEPTED);
    });
  }

  #changed(message: StreamReport): void {
    const stream = liveRegistry(this.#app).byName(message.stream);
    if (!stream || stream.endedAt !== null) return;
    if (message.type === "ended") return this.#ended(stream, message.endedAtMs);
    if (message.type === "part" || message.type === "health") {
      applyReport(stream, message);
      if (message.type === "part") liveMeter(this.#app).receive(stream, message.part);
      return;
    }
    const state = this.#reports.stateBefore(stream);
    applyReport(stream, message);
    const { stream: name, ...report } = message;
    const path = fileOf(report);
    const stored = path === null ? undefined : this.#recordings.get(name)?.add(stream.folder, path);
    this.#reports.add(name, report, { state, stored });
    if (report.type === "interrupted") this.#interrupted(name, this.#app.clock.now());
    if (report.type === "resumed") this.#interrupted(name, null);
  }

  /** Passes a report of renditions on to other servers, after the playlists have changed. */
  shareRendition({ stream: name, ...report }: RenditionReport): void {
    const stream = liveRegistry(this.#app).byName(name);
    if (!stream || report.type === "part" || !sharesStreams(this.#app)) return;
    const path = fileOf(report);
    const stored = path === null ? undefined : this.#recordings.get(name)?.addRendition(stream.folder, path);
    this.#reports.add(name, report, { state: null, ...(stored && { stored }) });
  }

  #interrupted(name: string, at: number | null): void {
    if (at !== null || sharesStreams(this.#app)) this.#work.add(name, () => interruptStream(this.#app, name, at));
  }

  #ended(stream: LiveStream, endedAtMs: number): void {
    this.#over(stream, endedAtMs);
    this.#reports.add(stream.name, { type: "ended", endedAtMs }, { state: null });
    this.#work.add(stream.name, async () => void (await endStream(this.#app, stream.name, endedAtMs)));
    setTimeout(() => void this.#forget(stream), LINGER_MS).unref();
  }

  #over(stream: LiveStream, endedAtMs: number): void {
    stream.timeline.ended();
    stream.endedAt = endedAtMs;
    stream.health = null;
  }

  #finished(name: string, finished: FinishedRecording | null): void {
    const recording = this.#recordings.get(name);
    this.#recordings.delete(name);
    const folder = join(liveFolder(this.#app), name + RECORDING);
    this.#work.add(name, async () => {
      const found = await streamWithChannel(this.#app.db, name);
      if (found?.stream.finishedAt === null && found.stream.server === serverIdOf(this.#app)) {
        if (finished && found.stream.recorded) {
          const stored = recording ?? new StoredRecording(this.#app, found.stream.tenantId);
          await stored.publish(name, folder, finished);
        } else if (!recording?.isAdopted)
          // What an adopted one lacks may be on the disk of its server.
          await this.#app.write((tx) => finishStream(tx, this.#app, found, null));
      }
      this.#unfinished.delete(name);
      for (const path of [folder, join(liveFolder(this.#app), name + STORED)])
        await rm(path, { recursive: true, force: true });
      if (!liveRegistry(this.#app).byName(name)) await this.#deleteFiles(name);
    });
  }

  /** Rows of streams that no process completes any more, and directories without such a row. */
  async #recover(): Promise<void> {
    const root = liveFolder(this.#app);
    const folders = new Set(await readdir(root).catch(() => []));
    const unfinished = await this.#app.db.select().from(rows).where(isNull(rows.finishedAt)).all();
    for (const { name, recorded, channelId } of unfinished) {
      if (liveRegistry(this.#app).byName(name)?.endedAt === null) continue;
      const isHere = folders.delete(name);
      // Other servers receive streams too, and have their files.
      if (!isHere && sharesStreams(this.#app)) continue;
      if (!(await claimStream(this.#app, name))) continue;
      this.#unfinished.add(name);
      const endedAt = await lastWrite(join(root, name), this.#app.clock.now());
      this.#work.add(name, async () => void (await endStream(this.#app, name, endedAt)));
      if (recorded && isHere)
        this.#send({ type: "recover", stream: name, from: name, isEncoded: await isEncoded(this.#app, channelId) });
      else this.#finished(name, null);
    }
    for (const name of folders)
      if (!liveRegistry(this.#app).byName(name.replace(RECORDING, ""))) await this.#deleteFiles(name);
  }

  /** Writes that the streams of this server run, and stops those that it does not have any more. */
  async #renew(): Promise<void> {
    if (this.#unfinished.size === 0) return;
    const running = [...liveRegistry(this.#app).all()].filter(
      ({ name, endedAt }) => endedAt === null && this.#unfinished.has(name),
    );
    try {
      const rows = new Map((await renewStreams(this.#app)).map(({ name, endedAt }) => [name, endedAt]));
      for (const { name, channelId } of running) {
        const isLost = rows.get(name) !== null && liveRegistry(this.#app).byName(name)?.endedAt === null;
        if (isLost) this.#stop(name, (await isTakenOver(this.#app, channelId)) ? TAKEN_OVER : NOT_RENEWED);
      }
    } catch (error) {
      this.#app.log.warn({ err: error }, "live streams could not be renewed");
    }
  }

  async #stopUnwanted(): Promise<void> {
    for await (const { name, reason } of unwantedStreams(this.#app)) this.#stop(name, reason);
  }

  /** `reason` is sent to the publisher. */
  #stop(name: string, reason: string): void {
    this.#send({ type: "stop", stream: name, reason });
  }

  async #forget(stream: LiveStream): Promise<void> {
    liveRegistry(this.#app).remove(stream);
    await this.#work.done(stream.name);
    await this.#deleteFiles(stream.name);
  }

  async #deleteFiles(name: string): Promise<void> {
    await rm(join(liveFolder(this.#app), name), { recursive: true, force: true }).catch((error) =>
      this.#app.log.warn({ err: error }, "the files of a live stream could not be deleted"),
    );
  }
}

export const liveStreams = forApp((app) => new LiveStreams(app));

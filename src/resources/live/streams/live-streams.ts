import { readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { eq, isNull } from "drizzle-orm";
import { liveChannels, liveStreams as rows } from "../../../../storage/db/schema.ts";
import { type App, forApp } from "../../../app.ts";
import { databaseFileOf } from "../../../config/database-file.ts";
import { HttpError } from "../../../lib/errors.ts";
import { randomName } from "../../../lib/tokens.ts";
import type {
  FinishedRecording,
  FromIngest,
  OpenedStream,
  ToIngest,
  WantedClip,
} from "../../../live/ingest/messages.ts";
import { LiveTimeline } from "../../../live/playlists/timeline.ts";
import { ViewerCount } from "../../../live/playlists/viewer-count.ts";
import { channelCache } from "../channel-cache.ts";
import { liveMeter } from "../minutes/live-meter.ts";
import { type LiveStream, liveRegistry } from "../registry.ts";
import { permitPublish } from "./permit.ts";
import { StoredRecording } from "./recording.ts";
import { endStream, finishStream, insertStream, streamWithChannel } from "./rows.ts";

/** File name of a media playlist in the directory of its track. */
export const LIVE_PLAYLIST = "live.m3u8";
/** Of streams below the data directory. */
const FOLDER = "live";
const RECORDING = ".recording";
/** How long viewers of a stream that has ended can still read it. */
const LINGER_MS = 10 * 60_000;
const CLIP_MS = 10_000;
const WATCH_MS = 2000;
const RETRY_MS = 5000;

type StreamReport = Exclude<Extract<FromIngest, { stream: string }>, { finished: unknown }>;
/** What every process of a server that serves a stream has to know. */
export type ReplicatedMessage = StreamReport | { opened: OpenedStream };
type StreamMessage = Exclude<FromIngest, { ready: unknown } | { failed: string } | { log: unknown }>;

export const liveFolder = ({ config }: Pick<App, "config">) => join(config.data_dir, FOLDER);

/**
 * The streams that the ingest process of this server reports: their playlists in memory, their rows and recordings. One
 * failure of a database or a store delays a stream; it does not end it.
 */
export class LiveStreams {
  readonly #app: App;
  readonly #recordings = new Map<string, StoredRecording>();
  /** Work on the row of each stream, in order. */
  readonly #work = new Map<string, Promise<void>>();
  readonly #clips = new Map<string, (made: FinishedRecording | null | undefined) => void>();
  #send: (message: ToIngest) => void = () => {};
  #watch: NodeJS.Timeout | undefined;

  constructor(app: App) {
    this.#app = app;
  }

  /** The ingest process has started: what the one before it, or the server before this one, has left is completed. */
  async connected(send: (message: ToIngest) => void): Promise<void> {
    this.#send = send;
    this.#watch ??= setInterval(() => void this.#stopRevoked(), WATCH_MS).unref();
    await this.#recover();
  }

  /** The ingest process has exited. Its streams wait for the next one, which completes them. */
  disconnected(): void {
    this.#send = () => {};
    for (const resolve of this.#clips.values()) resolve(undefined);
    for (const stream of liveRegistry(this.#app).all()) {
      if (stream.endedAt === null) this.#ended(stream, this.#app.clock.now());
    }
  }

  receive(message: StreamMessage): void {
    try {
      this.#receive(message);
    } catch (error) {
      // Whatever one stream reports, the others continue.
      this.#app.log.error({ err: error }, "a live stream was reported incorrectly");
      if ("stream" in message) this.#stop(message.stream);
    }
  }

  /**
   * Copies a part of a running stream, to a directory that the caller deletes. Null when there is no complete segment of
   * that time. Throws 503 when the ingest process does not answer.
   */
  async clip(stream: LiveStream, wanted: WantedClip): Promise<{ folder: string; made: FinishedRecording } | null> {
    const clip = `${stream.name}.clip-${randomName(8)}`;
    const { promise, resolve } = Promise.withResolvers<FinishedRecording | null | undefined>();
    const timer = setTimeout(() => resolve(undefined), CLIP_MS);
    this.#clips.set(clip, resolve);
    this.#send({ clip, of: stream.name, wanted });
    const made = await promise;
    clearTimeout(timer);
    this.#clips.delete(clip);
    if (made === undefined) throw new HttpError(503, "busy", "The stream cannot be read at this time; try again.");
    return made && { folder: join(liveFolder(this.#app), clip), made };
  }

  #receive(message: StreamMessage): void {
    if ("question" in message) {
      const answer = (permission: Awaited<ReturnType<typeof permitPublish>>) =>
        this.#send({ answer: message.question, permission });
      permitPublish(this.#app, message.publish).then(answer, (error) => {
        this.#app.log.error({ err: error }, "a publish could not be authorized");
        answer({ accepted: false, reason: "unavailable" });
      });
    } else if ("opened" in message) this.#opened(message.opened);
    else if ("clip" in message) this.#clips.get(message.clip)?.(message.made);
    else this.#changed(message);
  }

  /** Resolves when the rows and recordings of all streams that were reported are complete. */
  async idle(): Promise<void> {
    while (this.#work.size > 0) await Promise.all(this.#work.values());
  }

  close(): void {
    clearInterval(this.#watch);
  }

  /** The same in a process that does not receive streams: another one completes them. */
  disconnectedReplica(): void {
    for (const stream of liveRegistry(this.#app).all())
      if (stream.endedAt === null) this.replicate({ stream: stream.name, endedAtMs: this.#app.clock.now() });
  }

  /** In such a process: requests for clips go to the other one. */
  sendClipsBy(send: (message: Extract<ToIngest, { clip: string }>) => void): void {
    this.#send = (message) => {
      if ("clip" in message) send(message);
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
    if ("opened" in message) return this.#register(message.opened);
    const stream = liveRegistry(this.#app).byName(message.stream);
    if (!stream || stream.endedAt !== null) return;
    if ("endedAtMs" in message) {
      this.#over(stream, message.endedAtMs);
      setTimeout(() => liveRegistry(this.#app).remove(stream), LINGER_MS).unref();
    } else applyReport(stream, message);
  }

  #register(opened: OpenedStream): void {
    const { name, channel, startedAtMs, partTargetSeconds, segmentTargetSeconds, tracks } = opened;
    const timeline = new LiveTimeline({
      ...{ startedAtMs, partTargetSeconds, segmentTargetSeconds, playlistName: LIVE_PLAYLIST },
      ...{ dvrSeconds: channel.dvrSeconds, isLowLatency: channel.isLowLatency },
    });
    for (const track of tracks) timeline.init(track);
    liveRegistry(this.#app).add({
      ...{ name, timeline, tenantId: channel.tenantId, channelId: channel.channelId, channel: channel.channel },
      ...{ startedAt: startedAtMs, endedAt: null, viewers: new ViewerCount(), health: null },
      viewersElsewhere: new Map(),
      folder: join(liveFolder(this.#app), name),
    });
  }

  #opened(opened: OpenedStream): void {
    const { name, channel } = opened;
    this.#register(opened);
    if (channel.record) this.#recordings.set(name, new StoredRecording(this.#app, channel.tenantId));
    this.#enqueue(name, async () => {
      if (!(await insertStream(this.#app, opened))) this.#stop(name);
    });
  }

  #changed(message: Extract<FromIngest, { stream: string }>): void {
    if ("finished" in message) return this.#finished(message.stream, message.finished);
    const stream = liveRegistry(this.#app).byName(message.stream);
    if (!stream || stream.endedAt !== null) return;
    if ("endedAtMs" in message) return this.#ended(stream, message.endedAtMs);
    applyReport(stream, message);
    if ("part" in message) liveMeter(this.#app).receive(stream, message.part);
    if (!("segment" in message)) return;
    const { track, name } = message.segment;
    this.#recordings.get(stream.name)?.add(stream.folder, `${track}/${name}`);
  }

  #ended(stream: LiveStream, endedAtMs: number): void {
    this.#over(stream, endedAtMs);
    this.#enqueue(stream.name, async () => void (await endStream(this.#app, stream.name, endedAtMs)));
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
    this.#enqueue(name, async () => {
      const found = await streamWithChannel(this.#app.db, name);
      if (found && found.stream.finishedAt === null) {
        if (finished && found.stream.recorded) {
          const stored = recording ?? new StoredRecording(this.#app, found.stream.tenantId);
          await stored.publish(name, folder, finished);
        } else await this.#app.write((tx) => finishStream(tx, this.#app, found, null));
      }
      await rm(folder, { recursive: true, force: true });
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
      if (!isHere && databaseFileOf(this.#app.config) === null) continue;
      const endedAt = await lastWrite(join(root, name), this.#app.clock.now());
      this.#enqueue(name, async () => void (await endStream(this.#app, name, endedAt)));
      if (recorded && isHere) this.#send({ recover: name, isEncoded: await this.#isEncoded(channelId) });
      else this.#finished(name, null);
    }
    for (const name of folders)
      if (!liveRegistry(this.#app).byName(name.replace(RECORDING, ""))) await this.#deleteFiles(name);
  }

  async #isEncoded(channelId: number): Promise<boolean> {
    const columns = { encodingProfile: liveChannels.encodingProfile };
    const row = await this.#app.db.select(columns).from(liveChannels).where(eq(liveChannels.id, channelId)).get();
    return row?.encodingProfile != null;
  }

  async #stopRevoked(): Promise<void> {
    for (const stream of liveRegistry(this.#app).all()) {
      if (stream.endedAt !== null) continue;
      const known = await channelCache(this.#app)
        .find(stream.channel)
        .catch(() => ({ id: stream.channelId }));
      if (known?.id !== stream.channelId) this.#stop(stream.name);
    }
  }

  #stop(name: string): void {
    this.#send({ stop: name, reason: "The channel does not accept publishers any more." });
  }

  async #forget(stream: LiveStream): Promise<void> {
    liveRegistry(this.#app).remove(stream);
    await this.#work.get(stream.name);
    await this.#deleteFiles(stream.name);
  }

  async #deleteFiles(name: string): Promise<void> {
    await rm(join(liveFolder(this.#app), name), { recursive: true, force: true }).catch((error) =>
      this.#app.log.warn({ err: error }, "the files of a live stream could not be deleted"),
    );
  }

  /** Runs `work` after all work on the stream before, and again until it succeeds or the server stops. */
  #enqueue(name: string, work: () => Promise<void>): void {
    const attempt = async (): Promise<void> => {
      try {
        await work();
      } catch (error) {
        if (this.#app.stopping.aborted) throw error;
        this.#app.log.error({ err: error, stream: name }, "a live stream could not be recorded yet");
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS).unref());
        return attempt();
      }
    };
    const done = (this.#work.get(name) ?? Promise.resolve())
      .then(attempt)
      .catch((error) => this.#app.log.error({ err: error, stream: name }, "the next start completes a live stream"))
      .finally(() => {
        if (this.#work.get(name) === done) this.#work.delete(name);
      });
    this.#work.set(name, done);
  }
}

function applyReport(stream: LiveStream, report: Exclude<StreamReport, { endedAtMs: number }>): void {
  const { timeline } = stream;
  if ("part" in report) timeline.part(report.part);
  else if ("segment" in report) timeline.segment(report.segment);
  else if ("init" in report) timeline.init(report.init);
  else if ("health" in report) stream.health = report.health;
  else if ("interrupted" in report) {
    stream.health = null;
    timeline.interrupted();
  } else timeline.resumed(report.resumedAtMs);
}

/** When the last segment of a stream was begun: ms since the epoch; `otherwise` for a stream without files. */
async function lastWrite(folder: string, otherwise: number): Promise<number> {
  const tracks = await readdir(folder).catch(() => []);
  const times = await Promise.all(tracks.map(async (name) => (await stat(join(folder, name))).mtimeMs));
  return times.length > 0 ? Math.round(Math.max(...times)) : otherwise;
}

export const liveStreams = forApp((app) => new LiveStreams(app));

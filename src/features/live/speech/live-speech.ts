import { LRUCache } from "lru-cache";
import { type App, forApp } from "#app.ts";
import { requireTenant } from "#features/tenants/queries.ts";
import { requireMinutes } from "#features/tenants/quota.ts";
import { HttpError } from "#lib/base";
import { binariesAside, cacheDir } from "#lib/executable";
import type { FromIngest, OpenedStream, ToIngest } from "#live/ingest/messages.ts";
import type { SegmentEvent } from "#live/playlists/events.ts";
import type { RenditionReport } from "#live/renditions/messages.ts";
import { diskOf } from "#platform/limits/disk-reserve.ts";
import { configuredTranscriber } from "#platform/outbound/transcribe/configured.ts";
import { liveMeter } from "../minutes/live-meter.ts";
import { type LiveStream, liveRegistry } from "../registry.ts";
import { applyReport } from "../shared/reports.ts";
import { StreamSpeech, serviceOf } from "./stream-speech.ts";

/** Faults of an engine are logged once in this time for each stream. */
const LOGGED_EVERY_MS = 60_000;
/** How often the minutes of a tenant are compared with its plan. */
const CHECKED_EVERY_MS = 30_000;

/** The speech of the streams that this process receives, as captions while they run. */
export class LiveSpeech {
  readonly #app: App;
  readonly #streams = new Map<string, StreamSpeech>();
  /** Segments of streams whose engine is being opened. */
  readonly #opening = new Map<string, SegmentEvent[]>();
  /** By tenant. */
  readonly #allowed = new LRUCache<number, boolean>({ max: 1000, ttl: CHECKED_EVERY_MS });
  #replicate: (report: RenditionReport) => void = () => {};
  #send: (message: ToIngest) => void = () => {};

  constructor(app: App) {
    this.#app = app;
  }

  /** Passes all reports on to other processes of the server, and to other servers. */
  replicateBy(replicate: (report: RenditionReport) => void): void {
    this.#replicate = replicate;
  }

  /** Passes on to the ingest process that the speech of a stream is written. */
  answerBy(send: (message: ToIngest) => void): void {
    this.#send = send;
  }

  /** Called with each message of the ingest process, after the playlists have changed. */
  observe(message: FromIngest): void {
    if (message.type === "opened") {
      if (message.opened.channel.captionsLive.length > 0) this.#opened(message.opened);
    } else if (message.type === "segment") {
      const { stream, segment } = message;
      this.#opening.get(stream)?.push(segment);
      const speech = this.#streams.get(stream);
      if (speech?.track === segment.track) speech.add(segment);
    } else if (message.type === "ended") void this.#finish(message.stream);
  }

  /** The ingest process has exited, and its streams have ended. */
  clear(): void {
    for (const name of [...this.#streams.keys()]) this.#end(name);
    this.#opening.clear();
  }

  /** The ingest process waits for the captions of the last seconds. */
  async #finish(name: string): Promise<void> {
    const speech = this.#streams.get(name);
    this.#streams.delete(name);
    this.#opening.delete(name);
    await speech?.finish();
    this.#send({ type: "spoken", stream: name });
  }

  #end(name: string): void {
    this.#opening.delete(name);
    this.#streams.get(name)?.end();
    this.#streams.delete(name);
  }

  #opened(opened: OpenedStream): void {
    const { log, config } = this.#app;
    const { name, channel } = opened;
    if (config.transcribe === "off")
      return log.warn({ stream: name }, "a stream has no captions: no transcriber is configured on this server");
    // At once: players read the multivariant playlist when it has its first segment, and only then.
    for (const language of channel.captionsLive)
      this.#report({ type: "service", stream: name, service: serviceOf(language), language });
    void this.#open(opened);
  }

  async #open({ name, channel: { captionsLive: languages }, tracks }: OpenedStream): Promise<void> {
    const { log, config } = this.#app;
    const stream = liveRegistry(this.#app).byName(name);
    const track = tracks.find(({ kind }) => kind === "audio")?.track;
    if (!stream || track === undefined) return;
    const early: SegmentEvent[] = [];
    this.#opening.set(name, early);
    try {
      const { transcriber } = await configuredTranscriber(config);
      if (!transcriber) throw new Error("A setting of the transcriber is missing.");
      const { ffmpeg } = await binariesAside({ ...config, cacheDir: cacheDir() });
      if (this.#opening.get(name) !== early) return;
      let loggedAt = Number.NEGATIVE_INFINITY;
      const speech = new StreamSpeech({
        stream,
        track,
        languages,
        transcriber,
        ffmpeg,
        memoryBytes: config.ffmpeg_memory_bytes,
        admit: () => diskOf(this.#app).ensure(),
        mayRecognize: () => this.#mayRecognize(stream),
        onRecognized: (ms) => liveMeter(this.#app).recognize(stream, ms),
        show: (caption) => this.#report({ type: "caption", stream: name, caption }),
        onError: (error) => {
          if (performance.now() - loggedAt < LOGGED_EVERY_MS) return;
          loggedAt = performance.now();
          log.warn({ err: error, stream: name }, "the speech of a stream could not be recognized");
        },
      });
      this.#streams.set(name, speech);
      for (const segment of early) if (segment.track === track) speech.add(segment);
    } catch (error) {
      log.warn({ err: error, stream: name }, "a stream has no captions");
    } finally {
      if (this.#opening.get(name) === early) this.#opening.delete(name);
    }
  }

  /** Whether minutes are left in the tenant's plan, as it is for encodes; asked for each piece, so it is remembered for a while. */
  async #mayRecognize({ tenantId, name }: LiveStream): Promise<boolean> {
    const { db, log } = this.#app;
    const known = this.#allowed.get(tenantId);
    if (known !== undefined) return known;
    const refusal = await requireTenant(db, { kind: "admin" }, tenantId)
      .then((tenant) => requireMinutes(db, this.#app, tenant))
      .then(
        () => null,
        (error: unknown) => {
          if (error instanceof HttpError) return error;
          throw error;
        },
      );
    if (refusal) log.warn({ stream: name, reason: refusal.message }, "the speech of a stream is not recognized");
    this.#allowed.set(tenantId, refusal === null);
    return refusal === null;
  }

  #report(report: RenditionReport): void {
    const stream = liveRegistry(this.#app).byName(report.stream);
    if (!stream || stream.endedAt !== null) return;
    applyReport(stream, report);
    this.#replicate(report);
  }
}

export const liveSpeech = forApp((app) => new LiveSpeech(app));

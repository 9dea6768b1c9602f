import { join } from "node:path";
import { Readable } from "node:stream";
import type { App } from "#app.ts";
import { randomName, sameSecret, setInterval, setTimeout } from "#lib/base";
import { diskReserve } from "#live/ingest/disk-reserve.ts";
import { keptSeconds } from "#live/ingest/segment-list.ts";
import type { PartEvent, SegmentEvent } from "#live/playlists/events.ts";
import type { RenditionsFrom } from "#live/playlists/rendition-periods.ts";
import { readEncoder } from "#live/renditions/encoder-output.ts";
import { feed } from "#live/renditions/feed.ts";
import { ManifestRenditions } from "#live/renditions/manifest-renditions.ts";
import { RENDITIONS_FOLDER } from "#live/renditions/messages.ts";
import { Rendition, type RenditionChange } from "#live/renditions/rendition.ts";
import { SourceSegments } from "#live/renditions/source-segments.ts";
import type { PlannedRendition } from "#media/ladder.ts";
import type { LiveStream } from "../registry.ts";
import type { WantedRenditions } from "./wanted-renditions.ts";

/** A worker that does not use its lease within this time has lost it. */
const UNUSED_MS = 10_000;
const LOOK_MS = 1000;
/** An encoder that falls behind the publisher by this much, in addition to where it began, is too slow or hangs. */
const MAX_LAG_SECONDS = 10;
const FIRST_WAIT_MS = 500;
const MAX_WAIT_MS = 30_000;
/** How long the end of the last segments may take after that of the stream. */
const END_MS = 10_000;

/** The renditions of a running stream that one worker encodes. */
type Run = {
  id: string;
  token: string;
  /** Number of the first segment that is sent. */
  from: number;
  /** Where it begins, and how far behind the publisher that was. */
  startSeconds: number;
  startLagSeconds: number;
  renditions: Rendition[];
  /** Aborts at its end. */
  ended: AbortController;
  isInputUsed: boolean;
  isOutputUsed: boolean;
  timers: NodeJS.Timeout[];
};

export type EncodeChange =
  | RenditionChange
  | { type: "encoded"; encoded: string[] }
  | { type: "renditions"; renditions: RenditionsFrom };

export type StreamEncodeOptions = {
  app: App;
  stream: LiveStream;
  wanted: WantedRenditions;
  dvrSeconds: number;
  /** The longest part. */
  partSeconds: number;
  /** Throws when the playlists contradict it. */
  report: (change: EncodeChange) => void;
  /** A worker can take it, now or again. */
  onOffer: () => void;
};

/**
 * The renditions of a running stream: offers them to workers, sends them the video of the publisher, and writes what they
 * encode. Whatever goes wrong ends only the renditions.
 */
export class StreamEncode {
  readonly source = new SourceSegments();
  readonly #options: StreamEncodeOptions;
  readonly #folder: string;
  readonly #admit: () => Promise<void>;
  readonly #all = new Map<string, Rendition>();
  /** What is encoded, largest first. None: it was given up. */
  #wanted: PlannedRendition[];
  #run: Run | null = null;
  /** The names of the renditions of the run. */
  #encoded: string[] = [];
  #waitMs = FIRST_WAIT_MS;
  #notBeforeMs = 0;
  #timer: NodeJS.Timeout | undefined;
  /** What the DASH manifest lists. */
  readonly #manifest: ManifestRenditions;

  constructor(options: StreamEncodeOptions) {
    this.#options = options;
    this.#manifest = new ManifestRenditions(this.source, (renditions) =>
      options.report({ type: "renditions", renditions }),
    );
    this.#wanted = options.wanted.renditions;
    this.#folder = join(options.stream.folder, RENDITIONS_FOLDER);
    this.#admit = diskReserve(options.stream.folder, options.app.config.min_free_bytes);
  }

  get stream(): LiveStream {
    return this.#options.stream;
  }

  /** Name of the track of the publisher's video. */
  get track(): string {
    return this.#options.wanted.track;
  }

  /** Whether a worker can take it now. */
  get isOffered(): boolean {
    const isWanted = this.#run === null && this.#wanted.length > 0 && !this.source.isEnded;
    return isWanted && this.source.lastComplete > 0 && performance.now() >= this.#notBeforeMs;
  }

  /** What is reported of the video of the publisher. */
  sourcePart(part: PartEvent): void {
    this.source.part(part);
    this.#manifest.update();
  }
  sourceSegment(segment: SegmentEvent): void {
    this.source.segment(segment);
    this.#manifest.update();
    this.#fill();
    if (this.isOffered) this.#options.onOffer();
  }

  /** A worker takes it, which must be offered. */
  start(): { id: string; token: string; renditions: PlannedRendition[] } {
    const renditions = this.#wanted.map((one) => this.#renditionOf(one));
    const from = Math.max(this.source.lastComplete, ...renditions.map(({ next }) => next ?? 0));
    const startSeconds = this.source.find(from)?.startSeconds ?? this.source.endSeconds;
    const run: Run = {
      id: randomName(24),
      token: randomName(40),
      from,
      renditions,
      startSeconds,
      startLagSeconds: this.source.endSeconds - startSeconds,
      ended: new AbortController(),
      isInputUsed: false,
      isOutputUsed: false,
      timers: [],
    };
    this.#run = run;
    const unused = setTimeout(() => {
      if (!run.isInputUsed || !run.isOutputUsed) this.#end(run, "the worker did not begin");
    }, UNUSED_MS);
    const look = setInterval(() => this.#look(run), LOOK_MS);
    run.timers = [unused.unref(), look.unref()];
    return { id: run.id, token: run.token, renditions: this.#wanted };
  }

  /** Whether it is the lease of the worker that encodes it. */
  hasLease(id: string, token: string): boolean {
    return this.#run?.id === id && sameSecret(this.#run.token, token);
  }

  /** The video of the publisher for the run, once; null when it was requested before. */
  input(): Readable | null {
    const run = this.#run;
    if (!run || run.isInputUsed) return null;
    run.isInputUsed = true;
    const folder = join(this.stream.folder, this.#options.wanted.track);
    const body = Readable.from(feed(this.source, { folder, from: run.from, signal: run.ended.signal }), {
      objectMode: false,
    });
    run.ended.signal.addEventListener("abort", () => body.destroy(), { once: true });
    body.once("error", (error) => this.#end(run, String(error)));
    body.once("close", () => {
      // After the end of the stream the worker completes what it has.
      if (!this.source.isEnded) this.#end(run, "the worker disconnected");
    });
    return body;
  }

  /**
   * Writes what the worker sends, once; null when it was sent before. Resolves at the end of the body, with whether the run
   * lasted until then. `stop` ends the body.
   */
  output(body: AsyncIterable<Buffer>, stop: () => void): Promise<boolean> | null {
    const run = this.#run;
    if (!run || run.isOutputUsed) return null;
    run.isOutputUsed = true;
    run.ended.signal.addEventListener("abort", stop, { once: true });
    return this.#read(run, body);
  }

  /** The stream has ended: nothing more can be listed. */
  end(): void {
    this.source.end();
    clearTimeout(this.#timer);
    const run = this.#run;
    // What the worker still sends is not listed, and it needs no error.
    if (run) run.timers.push(setTimeout(() => this.#end(run, "the stream has ended"), END_MS).unref());
  }

  async #read(run: Run, body: AsyncIterable<Buffer>): Promise<boolean> {
    try {
      await readEncoder(body, run.renditions);
      this.#end(run, "the worker has ended its output");
    } catch (error) {
      this.#end(run, String(error));
    }
    return this.source.isEnded;
  }

  #renditionOf({ name, width, height }: PlannedRendition): Rendition {
    const known = this.#all.get(name);
    if (known) return known;
    const { wanted, dvrSeconds } = this.#options;
    const { source } = this;
    const rendition = new Rendition({
      name,
      width,
      height,
      source,
      folder: this.#folder,
      admit: this.#admit,
      frameRate: wanted.frameRate,
      sourceDelay: wanted.delay,
      keptSeconds: keptSeconds(dvrSeconds),
      partSeconds: this.#options.partSeconds,
      report: (change) => this.#report(change),
      onFailure: (error) => this.#giveUp(`a rendition cannot be stored: ${error}`),
    });
    this.#all.set(name, rendition);
    return rendition;
  }

  #report(change: RenditionChange): void {
    if (this.source.isEnded) return;
    try {
      this.#options.report(change);
      if (change.type === "segment") this.#manifest.segment(change.segment.track, change.segment.segment);
      else if (change.type === "gap") this.#manifest.gap(change.gap.track, change.gap.segment);
    } catch (error) {
      return this.#giveUp(`a rendition was reported incorrectly: ${error}`);
    }
    const run = this.#run;
    if (!run || change.type !== "segment") return;
    const { track } = change.segment;
    // One that an encoder before has completed is not of this run.
    if (this.#encoded.includes(track) || change.segment.segment < run.from) return;
    this.#waitMs = FIRST_WAIT_MS;
    this.#encoded = run.renditions
      .map(({ name }) => name)
      .filter((name) => name === track || this.#encoded.includes(name));
    this.#listed();
  }

  /** The encoder must not be further behind. */
  #look(run: Run): void {
    if (this.source.isEnded || this.#run !== run) return;
    const reached = Math.min(...run.renditions.map(({ seconds }) => seconds));
    const lag = this.source.endSeconds - Math.max(run.startSeconds, reached);
    if (lag <= MAX_LAG_SECONDS + run.startLagSeconds) return;
    // One that has encoded nothing hangs, or cannot reach the server.
    if (this.#encoded.length > 0 && this.#wanted.length > 1) this.#wanted = this.#wanted.slice(1);
    else if (this.#encoded.length > 0) this.#waitMs = MAX_WAIT_MS;
    this.#end(run, "the worker is too slow");
  }

  #giveUp(reason: string): void {
    this.#wanted = [];
    if (this.#run) this.#end(this.#run, reason);
    const { app, stream } = this.#options;
    app.log.warn({ stream: stream.name, channel: stream.channel, reason }, "a live stream has no renditions any more");
  }

  #end(run: Run, reason: string): void {
    if (this.#run !== run) return;
    this.#run = null;
    for (const timer of run.timers) clearTimeout(timer);
    run.ended.abort();
    for (const rendition of run.renditions) {
      if (this.source.isEnded) rendition.finish();
      else rendition.abandon();
    }
    const { app, stream, onOffer } = this.#options;
    if (this.source.isEnded) return;
    app.log.warn({ stream: stream.name, channel: stream.channel, reason }, "the renditions of a live stream ended");
    const hadEncoded = this.#encoded.length > 0;
    this.#encoded = [];
    if (hadEncoded) this.#listed();
    this.#fill();
    this.#notBeforeMs = performance.now() + this.#waitMs;
    this.#timer = setTimeout(onOffer, this.#waitMs).unref();
    this.#waitMs = Math.min(MAX_WAIT_MS, this.#waitMs * 2);
  }

  /** Other renditions are encoded than before. */
  #listed(): void {
    this.#options.report({ type: "encoded", encoded: this.#encoded });
    this.#manifest.encoded(this.#encoded);
  }

  /** Gaps of what no worker encodes. */
  #fill(): void {
    for (const rendition of this.#all.values())
      if (!this.#run?.renditions.includes(rendition)) rendition.fill(this.source.lastComplete);
  }
}

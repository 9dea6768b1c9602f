import type { Socket } from "node:net";
import { type App, forApp } from "#app.ts";
import { setTimeout } from "#lib/base";
import type { FromIngest, FromIngestOf, OpenedStream } from "#live/ingest/messages.ts";
import type { RenditionReport } from "#live/renditions/messages.ts";
import { liveRegistry } from "../registry.ts";
import { applyReport } from "../shared/reports.ts";
import { type EncodeChange, StreamEncode } from "./stream-encode.ts";
import { wantedRenditions } from "./wanted-renditions.ts";

/** What an encode needs of the publisher's video. */
type OfStream = FromIngestOf<"part" | "segment" | "ended">;

/**
 * The renditions of the streams that this process receives, which workers encode while the streams run. An encode is no job:
 * it has no asset, and is lost with the process.
 */
export class LiveEncodes {
  readonly #app: App;
  readonly #encodes = new Map<string, StreamEncode>();
  /** Streams whose renditions are being determined. What is reported meanwhile. */
  readonly #opening = new Map<string, OfStream[]>();
  readonly #waiting = new Set<() => void>();
  #replicate: (report: RenditionReport) => void = () => {};

  constructor(app: App) {
    this.#app = app;
  }

  /** Passes all reports on to other processes of the server, and to other servers. */
  replicateBy(replicate: (report: RenditionReport) => void): void {
    this.#replicate = replicate;
  }

  /** Called with each message of the ingest process, after the playlists have changed. */
  observe(message: FromIngest): void {
    if (message.type === "opened") return void this.#open(message.opened);
    if (message.type !== "part" && message.type !== "segment" && message.type !== "ended") return;
    const early = this.#opening.get(message.stream);
    if (early) return void early.push(message);
    const encode = this.#encodes.get(message.stream);
    if (encode) this.#receive(encode, message);
  }

  /** The ingest process has exited, and its streams have ended. */
  clear(): void {
    for (const encode of this.#encodes.values()) encode.end();
    this.#encodes.clear();
    this.#opening.clear();
  }

  /**
   * An encode that a worker takes, as soon as there is one; null when there is none within `seconds`, when `socket` closes or
   * the server stops.
   */
  async next({ seconds, socket }: { seconds: number; socket: Socket | undefined }) {
    const until = performance.now() + seconds * 1000;
    for (;;) {
      for (const encode of this.#encodes.values())
        if (encode.isOffered) return { channel: encode.stream.channel, ...encode.start() };
      const waitMs = until - performance.now();
      if (waitMs <= 0 || socket?.destroyed || this.#app.stopping.aborted) return null;
      await this.#change(waitMs, socket);
    }
  }

  /** The encode of a lease; undefined when it is not valid any more. */
  ofLease(id: string, token: string): StreamEncode | undefined {
    return this.#encodes.values().find((encode) => encode.hasLease(id, token));
  }

  async #change(waitMs: number, socket: Socket | undefined): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const wake = () => resolve();
    const timer = setTimeout(wake, waitMs);
    const { stopping } = this.#app;
    this.#waiting.add(wake);
    stopping.addEventListener("abort", wake, { once: true });
    socket?.once("close", wake);
    await promise;
    clearTimeout(timer);
    this.#waiting.delete(wake);
    stopping.removeEventListener("abort", wake);
    socket?.off("close", wake);
  }

  async #open(opened: OpenedStream): Promise<void> {
    const stream = liveRegistry(this.#app).byName(opened.name);
    if (!stream) return;
    const early: OfStream[] = [];
    this.#opening.set(opened.name, early);
    try {
      const wanted = await wantedRenditions(this.#app, opened, stream.folder);
      if (!wanted || this.#opening.get(opened.name) !== early) return;
      const encode = new StreamEncode({
        app: this.#app,
        stream,
        wanted,
        dvrSeconds: opened.channel.dvrSeconds,
        partSeconds: opened.partTargetSeconds,
        report: (change) => this.#report(opened.name, change),
        onOffer: () => {
          for (const wake of this.#waiting) wake();
        },
      });
      this.#encodes.set(opened.name, encode);
      for (const message of early) this.#receive(encode, message);
    } catch (error) {
      this.#app.log.warn({ err: error, stream: opened.name }, "a live stream has no renditions");
    } finally {
      if (this.#opening.get(opened.name) === early) this.#opening.delete(opened.name);
    }
  }

  #receive(encode: StreamEncode, message: OfStream): void {
    const { track } = encode;
    if (message.type === "part" && message.part.track === track) encode.sourcePart(message.part);
    else if (message.type === "segment" && message.segment.track === track) encode.sourceSegment(message.segment);
    else if (message.type === "ended") {
      encode.end();
      this.#encodes.delete(message.stream);
    }
  }

  #report(name: string, change: EncodeChange): void {
    const stream = liveRegistry(this.#app).byName(name);
    if (!stream || stream.endedAt !== null) return;
    const report: RenditionReport = { stream: name, ...change };
    applyReport(stream, report);
    this.#replicate(report);
  }
}

export const liveEncodes = forApp((app) => new LiveEncodes(app));

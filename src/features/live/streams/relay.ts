import type { App, Peers } from "#app.ts";
import { setInterval } from "#lib/base";
import type { FromIngestOf, ToIngest, ToIngestOf } from "#live/ingest/messages.ts";
import type { RenditionReport } from "#live/renditions/messages.ts";
import { liveRegistry } from "../registry.ts";
import { liveStreams, type ReplicatedMessage } from "./live-streams.ts";
import { StreamLog } from "./stream-log.ts";

const TOPIC = "live";
const VIEWERS_MS = 5000;
/** About 100 kB. */
const SNAPSHOT_MESSAGES = 500;

/** Messages between the processes of a server (`serve --processes`). */
type Relayed =
  | { type: "report"; report: ReplicatedMessage | FromIngestOf<"clip"> }
  /** From a process that has started: it has no streams yet. */
  | { type: "sync" }
  /** Answers `sync`, in several messages. What was reported before it is in it. */
  | { type: "snapshot"; reports: ReplicatedMessage[]; isLast: boolean }
  /** The process that receives streams has started again: those before have ended. */
  | { type: "reset" }
  | { type: "toIngest"; message: ToIngestOf<"clip"> }
  /** The viewers of each stream by its name, in one process. */
  | { type: "viewers"; viewers: Record<string, number> };

/**
 * One process of a server receives streams, and all serve them: it passes on what its ingest process reports, and a
 * process that starts later receives what it has missed. Files are on the same disk.
 */
export class LiveRelay {
  readonly #app: App;
  readonly #peers: Peers;
  readonly #log = new StreamLog();

  constructor(app: App, peers: Peers) {
    this.#app = app;
    this.#peers = peers;
    setInterval(() => this.#publishViewers(), VIEWERS_MS).unref();
  }

  /** This process receives the streams; `send` is the channel to its ingest process. */
  lead(send: (message: ToIngest) => void): void {
    this.#peers.subscribe(TOPIC, (value, from) => {
      const message = value as Relayed;
      switch (message.type) {
        case "sync":
          return this.#publishSnapshot(from);
        case "toIngest":
          return send(message.message);
        case "viewers":
          return this.#viewers(message.viewers, from);
        case "report":
        case "snapshot":
        case "reset":
          // From this process.
          return;
        default:
          message satisfies never;
      }
    });
    this.#publish({ type: "reset" });
  }

  /** Another process, `leader`, receives them. */
  follow(leader: number): void {
    const streams = liveStreams(this.#app);
    let isSynced = false;
    this.#peers.subscribe(TOPIC, (value, from) => {
      const message = value as Relayed;
      switch (message.type) {
        case "viewers":
          return this.#viewers(message.viewers, from);
        case "reset":
          return streams.disconnectedReplica();
        case "snapshot":
          for (const report of message.reports) streams.replicate(report);
          isSynced ||= message.isLast;
          return;
        case "report":
          if (message.report.type === "clip") streams.receive(message.report);
          else if (isSynced) streams.replicate(message.report);
          return;
        case "sync":
        case "toIngest":
          // For the process that receives the streams.
          return;
        default:
          message satisfies never;
      }
    });
    streams.sendClipsBy((message) => this.#publish({ type: "toIngest", message }, leader));
    this.#publish({ type: "sync" }, leader);
  }

  /** The ingest process has exited, and its streams with it. */
  ended(): void {
    this.#log.clear();
    this.#publish({ type: "reset" });
  }

  /** Called with each message of the ingest process, and of the renditions of its streams. */
  report(message: Parameters<ReturnType<typeof liveStreams>["receive"]>[0] | RenditionReport): void {
    if (message.type === "question" || message.type === "finished") return;
    if (message.type !== "clip") this.#log.add(message);
    this.#publish({ type: "report", report: message });
  }

  #publish(message: Relayed, to?: number): void {
    this.#peers.publish(TOPIC, message, to);
  }

  #publishSnapshot(to: number): void {
    const all = [...this.#log.all()];
    for (let from = 0; from === 0 || from < all.length; from += SNAPSHOT_MESSAGES) {
      const end = from + SNAPSHOT_MESSAGES;
      this.#publish({ type: "snapshot", reports: all.slice(from, end), isLast: end >= all.length }, to);
    }
  }

  #publishViewers(): void {
    const now = this.#app.clock.now();
    const counts = [...liveRegistry(this.#app).all()].map(({ name, viewers }) => [name, viewers.count(now)]);
    if (counts.length > 0) this.#publish({ type: "viewers", viewers: Object.fromEntries(counts) });
  }

  #viewers(counts: Record<string, number>, from: number): void {
    const at = this.#app.clock.now();
    for (const [name, count] of Object.entries(counts))
      liveRegistry(this.#app).byName(name)?.viewersElsewhere.set(from, { count, at });
  }
}

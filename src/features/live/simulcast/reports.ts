import { eq } from "drizzle-orm";
import { type App, forApp } from "#app.ts";
import { egressCounter } from "#features/playback/egress.ts";
import { iso } from "#lib/base";
import { type SimulcastReport, TARGET_STATUS, type TargetReport } from "#live/simulcast/messages.ts";
import { emit } from "#platform/events/emit.ts";
import { metricsOf } from "#platform/http/metrics.ts";
import { liveChannels } from "#storage/db/schema.ts";
import { simulcastTargets } from "#storage/db/schema-live.ts";
import { StreamWork } from "../streams/stream-work.ts";
import { targetStates } from "./states.ts";

/** What the ingest process reports about simulcast targets: their states, egress, metrics and events. */
class SimulcastReports {
  readonly #app: App;
  readonly #work: StreamWork;
  /** Targets that have failed and not been live since, by channel. They are not events again at each retry. */
  readonly #failing = new Map<number, Set<number>>();
  #isReceiving = false;

  constructor(app: App) {
    this.#app = app;
    this.#work = new StreamWork(app);
  }

  /** In the one process of the server that starts the ingest process: it counts, and emits the events. */
  receive(report: SimulcastReport): void {
    const { channelId, tenantId, sentBytes, failures, targets } = report;
    this.#isReceiving = true;
    if (sentBytes > 0) egressCounter(this.#app).add(tenantId, sentBytes);
    const { simulcast } = metricsOf(this.#app);
    simulcast.sentBytes += sentBytes;
    simulcast.failures += failures;
    if (targets) this.#emitChanges(channelId, targets);
    else if (targets === null) this.#failing.delete(channelId);
    this.replicate(report);
  }

  /** In every other process of the server. */
  replicate({ channelId, targets }: SimulcastReport): void {
    if (targets === null) targetStates(this.#app).delete(channelId);
    else if (targets) targetStates(this.#app).set(channelId, targets);
  }

  /** The ingest process has exited, and its streams with it. */
  clear(): void {
    targetStates(this.#app).clear();
    this.#failing.clear();
  }

  /** Enabled targets of streams, by status; none in a process that only replicates them. */
  counts(): [TargetReport["status"], number][] {
    const all = this.#isReceiving ? [...targetStates(this.#app).values()].flat() : [];
    return TARGET_STATUS.map((status) => [status, all.filter((target) => target.status === status).length]);
  }

  /** Resolves when all events that are due are in the database. */
  idle(): Promise<void> {
    return this.#work.idle();
  }

  #emitChanges(channelId: number, targets: readonly TargetReport[]): void {
    const before = this.#failing.get(channelId) ?? new Set();
    // One that has changed since is connecting, and has not recovered yet.
    const failing = targets.filter(({ id, status }) => status === "failed" || (status !== "live" && before.has(id)));
    this.#failing.set(channelId, new Set(failing.map(({ id }) => id)));
    for (const target of targets) {
      const wasFailing = before.has(target.id);
      if (target.status === "failed" ? !wasFailing : target.status === "live" && wasFailing) this.#emit(target);
    }
  }

  #emit({ id, status, sinceMs, error }: TargetReport): void {
    const emitted = async () =>
      this.#app.write(async (tx) => {
        const found = await tx
          .select({ target: simulcastTargets, channel: liveChannels.channel })
          .from(simulcastTargets)
          .innerJoin(liveChannels, eq(liveChannels.id, simulcastTargets.channelId))
          .where(eq(simulcastTargets.id, id))
          .get();
        // It was deleted meanwhile.
        if (!found) return;
        const { tenantId, channelId, name } = found.target;
        const data = { channel_id: channelId, channel: found.channel, target_id: id, target: name };
        const at = iso(sinceMs);
        if (status === "live")
          await emit(tx, this.#app, "live.target.recovered", { tenantId, data: { ...data, recovered_at: at } });
        else
          await emit(tx, this.#app, "live.target.failed", {
            tenantId,
            data: { ...data, failed_at: at, error: error ?? "" },
          });
      });
    this.#work.add(`target ${id}`, emitted);
  }
}

export const simulcastReports = forApp((app) => new SimulcastReports(app));

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
import { targetEvent } from "./targets.ts";

/** What the ingest process reports about simulcast targets: their states, egress, metrics and events. */
class SimulcastReports {
  readonly #app: App;
  readonly #work: StreamWork;
  /** What the last events of targets said, by channel and target. One that has failed is no event again at each retry. */
  readonly #shown = new Map<number, Map<number, TargetReport["status"]>>();
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
    else if (targets === null) this.#emitChanges(channelId, []);
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
    for (const channelId of this.#shown.keys()) this.#emitChanges(channelId, []);
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
    const shown = this.#shown.get(channelId) ?? new Map<number, TargetReport["status"]>();
    for (const target of targets) {
      const { id, status } = target;
      const before = shown.get(id);
      // One that has changed since its failure is connecting, and has not recovered yet.
      if (status === before || (status === "connecting" && before === "failed")) continue;
      shown.set(id, status);
      this.#emit(target, before);
    }
    for (const id of shown.keys()) {
      if (targets.some((target) => target.id === id)) continue;
      shown.delete(id);
      this.#emit({ id, status: "ended" });
    }
    if (shown.size > 0) this.#shown.set(channelId, shown);
    else this.#shown.delete(channelId);
  }

  #emit(report: TargetReport | { id: number; status: "ended" }, before?: TargetReport["status"]): void {
    const app = this.#app;
    const emitted = async () =>
      app.write(async (tx) => {
        const found = await tx
          .select({ target: simulcastTargets, channel: liveChannels.channel })
          .from(simulcastTargets)
          .innerJoin(liveChannels, eq(liveChannels.id, simulcastTargets.channelId))
          .where(eq(simulcastTargets.id, report.id))
          .get();
        // It was deleted meanwhile.
        if (!found) return;
        const { tenantId, data } = targetEvent(found, found.target);
        if (report.status === "ended") return emit(tx, app, "live.target.ended", { tenantId, data });
        if (report.status === "connecting") return emit(tx, app, "live.target.connecting", { tenantId, data });
        const at = iso(report.sinceMs);
        if (report.status === "failed") {
          const failed = { ...data, failed_at: at, error: report.error ?? "" };
          return emit(tx, app, "live.target.failed", { tenantId, data: failed });
        }
        await emit(tx, app, "live.target.started", { tenantId, data });
        if (before === "failed")
          await emit(tx, app, "live.target.recovered", { tenantId, data: { ...data, recovered_at: at } });
      });
    this.#work.add(`target ${report.id}`, emitted);
  }
}

export const simulcastReports = forApp((app) => new SimulcastReports(app));

import { statfs } from "node:fs/promises";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { sql } from "drizzle-orm";
import { type App, forApp } from "#app.ts";
import { liveRegistry } from "#features/live/registry.ts";
import { storedStreams } from "#features/live/shared/stored-streams.ts";
import { simulcastReports } from "#features/live/simulcast/reports.ts";
import { exposition, type MetricFamily, type Sample } from "#lib/base";
import { programVersion } from "#lib/executable";
import { metricsOf } from "#platform/http/metrics.ts";
import { route } from "#platform/http/route.ts";

const JOB_STATES = ["queued", "running", "completed", "failed", "canceled"] as const;
/** The encoding speed is averaged over this many recently completed jobs. */
const LAST_JOBS = 20;

/** Maximum since the last scrape, so that one peak does not stay forever. */
const eventLoop = forApp(() => {
  const delay = monitorEventLoopDelay({ resolution: 10 });
  delay.enable();
  return delay;
});

const versionOf = forApp(() => ({ version: programVersion() }));

export const metricsRoutes = [
  route({
    method: "GET",
    path: "/metrics",
    credential: "metrics",
    tag: "Operator",
    summary: "Get metrics in the Prometheus text format",
    hidden: true,
    responses: { 200: null },
    handle: async ({ app }) =>
      new Response(exposition([...(await processFamilies(app)), ...(await families(app))]), {
        headers: { "content-type": "text/plain; version=0.0.4; charset=utf-8", "cache-control": "no-store" },
      }),
  }),
];

const gauge = (name: string, help: string, samples: readonly Sample[] | number | null): MetricFamily => ({
  name: `vodbox_${name}`,
  help,
  type: "gauge",
  samples: Array.isArray(samples) ? samples : [{ value: samples as number | null }],
});
const counter = (...all: Parameters<typeof gauge>): MetricFamily => ({ ...gauge(...all), type: "counter" });

/** Metrics that each process counts; with several processes, of all of them, with the label `process`. */
async function processFamilies(app: App): Promise<MetricFamily[]> {
  if (!app.peers) return processFigures(app);
  const all = (await app.peers.gather()).flatMap(({ slot, families }) =>
    families.map((family) => ({
      ...family,
      samples: family.samples.map((sample) => ({ ...sample, labels: { process: String(slot), ...sample.labels } })),
    })),
  );
  return [...Map.groupBy(all, ({ name }) => name).values()].map((same) => ({
    ...(same[0] as MetricFamily),
    samples: same.flatMap(({ samples }) => samples),
  }));
}

/** This process's counters since its start, and its state. */
export function processFigures(app: App): MetricFamily[] {
  const counted = metricsOf(app);
  const queue = app.writes();
  const memory = process.memoryUsage();
  const cpu = process.cpuUsage();
  const streams = [...liveRegistry(app).all()].filter(({ endedAt }) => endedAt === null);
  const now = app.clock.now();
  return [
    gauge(
      "process_start_time_seconds",
      "Start time of the server (Unix time)",
      Math.round(Date.now() / 1000 - process.uptime()),
    ),
    {
      name: "vodbox_http_request_duration_seconds",
      help: "Request duration by route",
      type: "histogram",
      samples: counted.requests.samples(),
    },
    counter("webhook_attempts_total", "Delivery attempts since the start, by result", counted.deliveries.samples()),
    counter("storage_errors_total", "Failed storage calls since the start, by reason", counted.storage.samples()),
    counter(
      "service_errors_total",
      "Failed calls to external services since the start; for transcription, as reported by workers",
      counted.services.samples(),
    ),
    counter(
      "scheduled_deletions_total",
      "Expired assets, and sources and analytics past their retention, deleted since the start",
      counted.scheduledDeletions.samples(),
    ),
    gauge("live_streams", "Live streams that this server receives", streams.length),
    gauge(
      "live_viewers",
      "Sessions that requested a live playlist within the last 30 s",
      [...streams, ...storedStreams(app).running()].reduce((sum, { viewers }) => sum + viewers.count(now), 0),
    ),
    gauge(
      "simulcast_targets",
      "Simulcast targets of live streams that this server receives, by state",
      simulcastReports(app)
        .counts()
        .map(([state, value]) => ({ labels: { state }, value })),
    ),
    counter(
      "simulcast_sent_bytes_total",
      "Bytes sent to simulcast targets since the start",
      counted.simulcast.sentBytes,
    ),
    counter(
      "simulcast_failures_total",
      "Connections to simulcast targets that could not be made, or were lost, since the start",
      counted.simulcast.failures,
    ),
    gauge("write_queue_depth", "Writes waiting for a transaction", queue.waiting),
    counter("db_commits_total", "Transactions committed", queue.commits),
    counter("db_commit_seconds_total", "Duration of commits", queue.commitSeconds),
    // Only a summary may have the label `quantile`.
    {
      ...gauge("event_loop_delay_seconds", "Event loop delay since the last scrape", loopSamples(app)),
      type: "summary",
    },
    gauge("memory_bytes", "Memory of the server process", [
      { labels: { kind: "rss" }, value: memory.rss },
      { labels: { kind: "heap_total" }, value: memory.heapTotal },
      { labels: { kind: "heap_used" }, value: memory.heapUsed },
      // Includes buffers.
      { labels: { kind: "external" }, value: memory.external },
    ]),
    counter("cpu_seconds_total", "CPU time of the server process", (cpu.user + cpu.system) / 1e6),
  ];
}

/** Metrics that are the same in every process. */
async function families(app: App): Promise<MetricFamily[]> {
  const [rows, disk, replica] = await Promise.all([
    figures(app),
    statfs(app.config.data_dir).catch(() => null),
    app.replica?.status(),
  ]);
  return [
    gauge("build_info", "Always 1; the version is a label", [
      { labels: { version: versionOf(app).version, node: process.versions.node }, value: 1 },
    ]),
    gauge(
      "jobs",
      "Transcoding jobs by state",
      JOB_STATES.map((state) => ({ labels: { state }, value: rows.jobs.get(state) ?? 0 })),
    ),
    gauge(
      "jobs_oldest_age_seconds",
      "Age of the oldest job in a state",
      (["queued", "running"] as const).map((state) => ({ labels: { state }, value: rows.ages[state] })),
    ),
    gauge("leases", "Active leases", rows.leases),
    gauge("leases_expired", "Expired leases that are not recovered yet", rows.expiredLeases),
    gauge(
      "transcode_speed_ratio",
      `Seconds of video encoded per second of work, over the last ${LAST_JOBS} completed jobs`,
      rows.speed,
    ),
    counter("transcoded_seconds_total", "Seconds of video encoded", rows.transcodedSeconds),
    gauge("stored_bytes", "Bytes stored by tenants, as billed", rows.storedBytes),
    counter("live_seconds_total", "Seconds of live streams received", rows.liveSeconds),
    counter("egress_bytes_total", "Bytes of media delivered", rows.egressBytes),
    gauge("tenants", "Tenants", rows.tenants),
    gauge("tenants_deleting", "Tenants that are being deleted", rows.deletingTenants),
    gauge("uploads_open", "Pending uploads", rows.openUploads),
    gauge("webhook_deliveries_pending", "Webhook deliveries waiting for an attempt", rows.pendingDeliveries),
    gauge("webhook_lag_seconds", "Age of the oldest due delivery", rows.webhookLag),
    gauge("unwanted_objects", "Unreferenced objects waiting for deletion", rows.unwanted),
    gauge("removal_held", "1 while a backup keeps objects from being removed", rows.held),
    ...(replica
      ? [gauge("replica_lag_seconds", "Age of the oldest change that is not in the replica", replica.lag_seconds)]
      : []),
    gauge("disk_free_bytes", "Free space of the file system of the data directory", disk && disk.bavail * disk.bsize),
    gauge("disk_size_bytes", "Size of the file system of the data directory", disk && disk.blocks * disk.bsize),
  ];
}

function loopSamples(app: App): Sample[] {
  const delay = eventLoop(app);
  const seconds = (nanoseconds: number) => (Number.isFinite(nanoseconds) && delay.count > 0 ? nanoseconds / 1e9 : null);
  const samples = [
    { labels: { quantile: "0.5" }, value: seconds(delay.percentile(50)) },
    { labels: { quantile: "0.99" }, value: seconds(delay.percentile(99)) },
    { labels: { quantile: "1" }, value: seconds(delay.max) },
  ];
  delay.reset();
  return samples;
}

/** Each query uses an index, and reads few rows. */
async function figures({ db, clock }: App) {
  const now = clock.now();
  const one = async (query: ReturnType<typeof sql>) =>
    (await db.all<{ value: number | null }>(query))[0]?.value ?? null;
  const age = async (query: ReturnType<typeof sql>) => {
    const since = await one(query);
    return since === null ? 0 : Math.max(0, now - since) / 1000;
  };
  const states = await db.all<{ state: string; value: number }>(
    sql`select status as state, jobs as value from job_counts`,
  );
  const sums = await db.get<{ tenants: number; stored: number; egress: number; made: number; live: number }>(
    sql`select count(*) as tenants, total(storage_bytes) as stored, total(egress_bytes) as egress,
      total(transcoding_ms) as made, total(live_ms) as live from tenants`,
  );
  const oldest = (state: string) =>
    age(sql`select created_at as value from transcoding_jobs where status = ${state} order by id limit 1`);
  return {
    jobs: new Map(states.map(({ state, value }) => [state, value])),
    ages: { queued: await oldest("queued"), running: await oldest("running") },
    leases: await one(
      sql`select count(*) as value from transcoding_tasks where status = 'running' and lease_expires_at > ${now}`,
    ),
    expiredLeases: await one(
      sql`select count(*) as value from transcoding_tasks where status = 'running' and lease_expires_at <= ${now}`,
    ),
    speed: await one(
      sql`select sum(asset.duration_seconds) * 1000.0 / sum(max(job.finished_at - job.started_at, 1)) as value
        from (select asset_id, started_at, finished_at from transcoding_jobs where status = 'completed'
          order by id desc limit ${LAST_JOBS}) as job join assets as asset on asset.id = job.asset_id`,
    ),
    transcodedSeconds: sums.made / 1000,
    liveSeconds: sums.live / 1000,
    storedBytes: sums.stored,
    egressBytes: sums.egress,
    tenants: sums.tenants,
    deletingTenants: await one(sql`select count(*) as value from tenants where delete_requested_at is not null`),
    openUploads: await one(sql`select count(*) as value from uploads where status = 'pending'`),
    pendingDeliveries: await one(sql`select count(*) as value from webhook_deliveries where status = 'pending'`),
    webhookLag: await age(
      sql`select min(next_attempt_at) as value from webhook_deliveries where status = 'pending' and next_attempt_at <= ${now}`,
    ),
    unwanted: await one(sql`select count(*) as value from unwanted_objects`),
    held: await one(sql`select count(*) > 0 as value from removal_holds where expires_at > ${now}`),
  };
}

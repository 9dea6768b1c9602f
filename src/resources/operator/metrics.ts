import { statfs } from "node:fs/promises";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { sql } from "drizzle-orm";
import { type App, forApp } from "../../app.ts";
import { metricsOf } from "../../http/metrics.ts";
import { route } from "../../http/route.ts";
import { embedded } from "../../lib/embedded.ts";
import { exposition, type MetricFamily, type Sample } from "../../lib/prometheus.ts";

const JOB_STATES = ["queued", "running", "completed", "failed", "canceled"] as const;
/** The speed is told of so many jobs that were completed last. */
const LAST_JOBS = 20;

/** Of the time since it was asked last, so that one peak does not stand for ever. */
const eventLoop = forApp(() => {
  const delay = monitorEventLoopDelay({ resolution: 10 });
  delay.enable();
  return delay;
});

const versionOf = forApp(() => JSON.parse(embedded("build-info.json").toString()) as { version: string });

export const metricsRoutes = [
  route({
    method: "GET",
    path: "/metrics",
    credential: "admin",
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

/** What each process counts for itself; where the server has several, of all of them, with `process` as a label. */
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

/** What this process counted since its start, and how it is. */
export function processFigures(app: App): MetricFamily[] {
  const counted = metricsOf(app);
  const queue = app.writes();
  const memory = process.memoryUsage();
  const cpu = process.cpuUsage();
  return [
    gauge(
      "process_start_time_seconds",
      "When the server started, Unix time",
      Math.round(Date.now() / 1000 - process.uptime()),
    ),
    {
      name: "vodbox_http_request_duration_seconds",
      help: "From a request's head to its answer's, by route",
      type: "histogram",
      samples: counted.requests.samples(),
    },
    counter(
      "webhook_attempts_total",
      "Attempts at deliveries since the start, by what became of the delivery",
      counted.deliveries.samples(),
    ),
    counter(
      "storage_errors_total",
      "Calls that storage could not do since the start, by reason",
      counted.storage.samples(),
    ),
    counter(
      "service_errors_total",
      "Calls that came to nothing at services outside since the start; of transcription, what workers told",
      counted.services.samples(),
    ),
    gauge("write_queue_depth", "Writes that wait for their transaction", queue.waiting),
    counter("db_commits_total", "Transactions committed", queue.commits),
    counter("db_commit_seconds_total", "Time that commits took", queue.commitSeconds),
    gauge("event_loop_delay_seconds", "How late the event loop was since the last scrape", loopSamples(app)),
    gauge("memory_bytes", "Memory of the server's process", [
      { labels: { kind: "rss" }, value: memory.rss },
      { labels: { kind: "heap_total" }, value: memory.heapTotal },
      { labels: { kind: "heap_used" }, value: memory.heapUsed },
      // Buffers too.
      { labels: { kind: "external" }, value: memory.external },
    ]),
    counter("cpu_seconds_total", "Processor time of the server's process", (cpu.user + cpu.system) / 1e6),
  ];
}

/** What is so whoever is asked. */
async function families(app: App): Promise<MetricFamily[]> {
  const [rows, disk] = await Promise.all([figures(app), statfs(app.config.data_dir).catch(() => null)]);
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
    gauge("leases", "Leases of workers that live", rows.leases),
    gauge("leases_expired", "Leases that ran out and were not recovered yet", rows.expiredLeases),
    gauge(
      "transcode_speed_ratio",
      `Seconds of video that a second of work makes, over the last ${LAST_JOBS} completed jobs`,
      rows.speed,
    ),
    counter("transcoded_seconds_total", "Seconds of video that were made", rows.transcodedSeconds),
    gauge("stored_bytes", "What tenants store, as it is counted for them", rows.storedBytes),
    counter("egress_bytes_total", "Bytes of media sent", rows.egressBytes),
    gauge("tenants", "Tenants", rows.tenants),
    gauge("uploads_open", "Upload sessions that are not complete", rows.openUploads),
    gauge("webhook_deliveries_pending", "Deliveries that wait for an attempt", rows.pendingDeliveries),
    gauge("webhook_lag_seconds", "How long the delivery that is due longest has been due", rows.webhookLag),
    gauge("unwanted_objects", "Objects that nobody names and that are still to be removed", rows.unwanted),
    gauge("removal_held", "1 while a backup keeps objects from being removed", rows.held),
    gauge("disk_free_bytes", "Free space where the data directory lies", disk && disk.bavail * disk.bsize),
    gauge("disk_size_bytes", "Size of the file system where the data directory lies", disk && disk.blocks * disk.bsize),
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

/** Each by an index, and by few rows of it. */
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
  const sums = await db.get<{ tenants: number; stored: number; egress: number; made: number }>(
    sql`select count(*) as tenants, total(storage_bytes) as stored, total(egress_bytes) as egress,
      total(transcoding_ms) as made from tenants`,
  );
  const oldest = (state: string) =>
    age(sql`select created_at as value from transcoding_jobs where status = ${state} order by id limit 1`);
  return {
    jobs: new Map(states.map(({ state, value }) => [state, value])),
    ages: { queued: await oldest("queued"), running: await oldest("running") },
    leases: await one(
      sql`select count(*) as value from transcoding_jobs where status = 'running' and lease_expires_at > ${now}`,
    ),
    expiredLeases: await one(
      sql`select count(*) as value from transcoding_jobs where status = 'running' and lease_expires_at <= ${now}`,
    ),
    speed: await one(
      sql`select sum(asset.duration_seconds) * 1000.0 / sum(max(job.finished_at - job.started_at, 1)) as value
        from (select asset_id, started_at, finished_at from transcoding_jobs where status = 'completed'
          order by id desc limit ${LAST_JOBS}) as job join assets as asset on asset.id = job.asset_id`,
    ),
    transcodedSeconds: sums.made / 1000,
    storedBytes: sums.stored,
    egressBytes: sums.egress,
    tenants: sums.tenants,
    openUploads: await one(sql`select count(*) as value from uploads where status = 'pending'`),
    pendingDeliveries: await one(sql`select count(*) as value from webhook_deliveries where status = 'pending'`),
    webhookLag: await age(
      sql`select min(next_attempt_at) as value from webhook_deliveries where status = 'pending' and next_attempt_at <= ${now}`,
    ),
    unwanted: await one(sql`select count(*) as value from unwanted_objects`),
    held: await one(sql`select count(*) > 0 as value from removal_holds where expires_at > ${now}`),
  };
}

import { stat, statfs } from "node:fs/promises";
import * as v from "valibot";
import { type App, forApp } from "#app.ts";
import { iso } from "#lib/base";
import { programVersion } from "#lib/executable";
import { STORE_KINDS } from "#model/enums.ts";
import { databaseFileOf } from "#platform/config/database-file.ts";
import { ORIGINS } from "#platform/config/load.ts";
import { localWorkerCount } from "#platform/config/local-worker-count.ts";
import { settingText, shownSettings } from "#platform/config/shown-settings.ts";
import { tooMany } from "#platform/http/limits.ts";
import { route } from "#platform/http/route.ts";
import { Time } from "#platform/http/schemas.ts";
import { RETRY_SECONDS, serverSentEvents } from "#platform/http/server-sent-events.ts";
import { historyOf, SAMPLE_SECONDS } from "./history.ts";
import { LOG_LEVELS, logStreamOf, MAX_LOG_STREAMS } from "./log-stream.ts";

const admin = { credential: "admin", tag: "Operator" } as const;

const Bytes = v.nullable(v.number());
const number = (about: string) => v.pipe(v.number(), v.description(about));
const text = (about: string) => v.pipe(v.string(), v.description(about));
const System = v.pipe(
  v.object({
    version: text("Version of vodbox"),
    node: text("Version of Node.js in the executable"),
    started_at: v.pipe(Time, v.description("When this process started")),
    processes: number("Serving processes"),
    workers: number("Workers that this server starts itself"),
    base_url: text("Prefix of all absolute URLs in responses"),
    data_dir: text("Directory of the database, local storage and secrets"),
    database_bytes: v.pipe(Bytes, v.description("Size of the database with its log; null for a remote one")),
    storage: v.pipe(v.nullable(v.picklist(STORE_KINDS)), v.description("Where objects are; null without storage")),
    disk: v.pipe(
      v.nullable(v.object({ size_bytes: number("Its size"), free_bytes: number("What vodbox may still write") })),
      v.description("File system of the data directory"),
    ),
  }),
  v.title("System"),
);

const HistorySample = v.object({
  at: v.pipe(Time, v.description("End of the interval")),
  requests: number("Responses in the interval"),
  errors: number("Responses with a status of 500 or more"),
  cpu_seconds: number("CPU time of all serving processes, without workers"),
  memory_bytes: number("Resident memory of all serving processes, without workers"),
  event_loop_busy: number("Share of the interval, 0 to 1, in which the busiest process could do nothing else"),
  jobs_queued: number("Transcoding jobs in the queue"),
  jobs_running: number("Transcoding jobs that run"),
  egress_bytes: number("Bytes of media delivered in the interval"),
  stored_bytes: number("Bytes stored by all tenants, as billed"),
  disk_free_bytes: v.pipe(Bytes, v.description("Free space of the file system of the data directory")),
});

const Setting = v.object({
  setting: text("Name; the variable is VODBOX_ and this in upper case"),
  value: v.pipe(v.nullable(v.string()), v.description("As text; secrets are masked; null when it is not set")),
  origin: v.pipe(v.picklist(ORIGINS), v.description("Where the value comes from")),
  about: text("What it does"),
});

const startedAt = forApp(({ clock }) => ({ time: clock.now() - Math.round(performance.now()) }));

/** The size of the file, its write-ahead log and their index. */
async function databaseBytes({ config }: App): Promise<number | null> {
  const file = databaseFileOf(config);
  if (file === null) return null;
  const sizes = ["", "-wal", "-shm"].map((end) =>
    stat(file + end).then(
      ({ size }) => size,
      () => 0,
    ),
  );
  return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
}

export const systemRoutes = [
  route({
    ...admin,
    method: "GET",
    path: "/api/v1/admin/system",
    operationId: "getSystem",
    summary: "Get version, uptime, disk and database of the server",
    responses: { 200: System },
    async handle({ app }) {
      const { config } = app;
      const disk = await statfs(config.data_dir).catch(() => null);
      return {
        version: programVersion(),
        node: process.versions.node,
        started_at: iso(startedAt(app).time),
        processes: config.processes,
        workers: localWorkerCount(config).count,
        base_url: app.baseUrl(),
        data_dir: config.data_dir,
        database_bytes: await databaseBytes(app),
        storage: app.objects?.kind ?? null,
        disk: disk && { size_bytes: disk.blocks * disk.bsize, free_bytes: disk.bavail * disk.bsize },
      };
    },
  }),
  route({
    ...admin,
    method: "GET",
    path: "/api/v1/admin/system/history",
    operationId: "getSystemHistory",
    summary: "Get what the server measured in the last hour",
    responses: {
      200: v.object({
        interval_seconds: number("Length of an interval"),
        samples: v.pipe(v.array(HistorySample), v.description("Oldest first")),
      }),
    },
    async handle({ app }) {
      const samples = await historyOf(app).samples();
      return {
        interval_seconds: SAMPLE_SECONDS,
        samples: samples.map((sample) => ({
          at: iso(sample.at),
          requests: sample.answered,
          errors: sample.failed,
          cpu_seconds: sample.cpuSeconds,
          memory_bytes: sample.memoryBytes,
          event_loop_busy: sample.busy,
          jobs_queued: sample.queuedJobs,
          jobs_running: sample.runningJobs,
          egress_bytes: sample.egressBytes,
          stored_bytes: sample.storedBytes,
          disk_free_bytes: sample.diskFreeBytes,
        })),
      };
    },
  }),
  route({
    ...admin,
    method: "GET",
    path: "/api/v1/admin/settings",
    operationId: "listSettings",
    summary: "List the settings of the server with their sources",
    responses: {
      200: v.object({
        file: v.pipe(v.nullable(v.string()), v.description("The configuration file; null without one")),
        settings: v.pipe(v.array(Setting), v.description("All settings")),
        warnings: v.pipe(v.array(v.string()), v.description("What the server did not understand")),
      }),
    },
    handle: ({ app: { config } }) => ({
      file: config.file,
      settings: shownSettings(config).map((one) => ({ ...one, value: settingText(one.value) })),
      warnings: [...config.warnings],
    }),
  }),
  route({
    ...admin,
    method: "GET",
    path: "/api/v1/admin/logs/stream",
    operationId: "streamLog",
    summary: "Receive the newest lines of the log, and later ones, as server-sent events",
    query: v.object({
      level: v.optional(v.pipe(v.picklist(LOG_LEVELS), v.description("Lowest level; default: info")), "info"),
    }),
    produces: ["text/event-stream"],
    responses: { 200: v.string() },
    errors: { 429: ["rate_limited"] },
    handle(context) {
      const stream = logStreamOf(context.app);
      if (stream.size >= MAX_LOG_STREAMS) throw tooMany(RETRY_SECONDS);
      return serverSentEvents(context, (events) => stream.add(events, context.query.level));
    },
  }),
];

import type { App } from "#app.ts";
import { newSetupCode } from "#features/credentials/sessions/setup.ts";
import { channelCache } from "#features/live/channel-cache.ts";
import { LEADER, leadEncodes } from "#features/live/renditions/leader.ts";
import { LiveRelay } from "#features/live/streams/relay.ts";
import { whipRequests } from "#features/live/whip/requests.ts";
import { processFigures } from "#features/operations/system/metrics.ts";
import { joinServers } from "#features/operations/system/servers.ts";
import { settleTimes } from "#features/transcoding/after-clock-step.ts";
import { graceAfterStart } from "#features/transcoding/recover.ts";
import { setTimeout, systemClock } from "#lib/base";
import type { Config } from "#platform/config/load.ts";
import { localWorkerCount } from "#platform/config/local-worker-count.ts";
import { removeServerUrl, writeServerUrl } from "#platform/config/server-file.ts";
import type { HttpServer } from "#platform/http/server.ts";
import { loadParsers } from "#platform/parsing/parse-document.ts";
import { type Scheduler, startScheduler } from "#platform/scheduled-tasks/scheduler.ts";
import { crossValidate } from "./cross-validate.ts";
import { startListening } from "./listen.ts";
import type { LiveIngest } from "./live-ingest.ts";
import type { LocalWorkers } from "./local-workers.ts";
import { type Opened, type OpenOptions, openApp } from "./open.ts";
import { allScheduledTasks } from "./scheduled-tasks.ts";
import { usableTls } from "./tls.ts";

export type Running = {
  opened: Opened;
  scheduler: Scheduler;
  /** The base of every absolute URL in a response. */
  baseUrl: string;
  /** The socket's own URL. */
  address: string;
  /** URL on the local machine, without TLS. */
  localAddress: string;
  /** URLs that publishers use, without the stream key. */
  publishUrls: string[];
  /** The one-time address that sets up a server without tenants; null for any other. */
  setupUrl: string | null;
  /** Releases leases, completes open requests, flushes what is in memory. Within 15 s. */
  stop(): Promise<void>;
};

/** Together below the 15 s that a stop may take. */
const WORKERS_GRACE_MS = 9000;
const REQUESTS_GRACE_MS = 4000;

const PARSERS_AFTER_MS = 3000;

export type ServeOptions = OpenOptions;

/**
 * Runs the whole server in this process, or one of several processes as `clusterWorker`; local workers in their own
 * processes.
 */
export async function serve(
  config: Config,
  { clock, clusterWorker = null, allowEmptyDatabase = false, log, ...options }: ServeOptions,
): Promise<Running> {
  await crossValidate(config, usableTls);
  if (!clusterWorker || clusterWorker.isFirst) for (const warning of config.warnings) log.warn(warning);
  const opened = await openApp(config, {
    ...options,
    log,
    clusterWorker,
    allowEmptyDatabase,
    replicates: true,
    ...(clock && { clock }),
  });
  const { app, server, egress } = opened;
  const closeAndThrow = async (error: unknown) => {
    await opened.close();
    throw error;
  };
  await joinServers(app).catch(closeAndThrow);
  // Before the first heartbeat, which would be refused. While other processes serve, no worker was kept waiting.
  if (!clusterWorker || clusterWorker.isFirst) await graceAfterStart(app).catch(closeAndThrow);
  const listening = await startListening(config, server, { log, isShared: clusterWorker !== null }).catch(
    closeAndThrow,
  );
  opened.listeningOn(listening.address);
  if (!clusterWorker) writeServerUrl(config, listening.localAddress);
  await channelCache(app).refresh();
  const isFirst = !clusterWorker || clusterWorker.isFirst;
  app.clock.onStep?.((step) => settleTimes(app, step, isFirst));
  // Setting a clock of a test starts no task.
  const taskClock = app.clock.onStep ? app.clock : systemClock;
  const tasks = allScheduledTasks(app, { authenticator: server.authenticator, egress });
  const scheduler = startScheduler(tasks, { log, clock: taskClock });
  clusterWorker?.link(app, () => processFigures(app));
  const setupCode = !clusterWorker || clusterWorker.isFirst ? await newSetupCode(app) : null;
  const ingest = await startIngest(app, server).catch(async (error) => {
    await Promise.all([scheduler.stop(), listening.close(0)]);
    await opened.close();
    throw error;
  });
  const workers = await startWorkers(app, listening.localAddress);
  const { count, reason } = localWorkerCount(config);
  log.info({ address: listening.address, data: config.data_dir, workers: count, workers_because: reason }, "serving");
  // After the first requests, which are answered sooner without it.
  setTimeout(() => loadParsers().catch(() => {}), PARSERS_AFTER_MS).unref();

  const stop = async () => {
    log.info("stopping");
    opened.beginStop();
    listening.beginClose();
    // Workers first: they release their leases through the API, which is closed next.
    await Promise.race([
      Promise.all([workers.stop(), ingest.stop()]),
      new Promise((resolve) => setTimeout(resolve, WORKERS_GRACE_MS).unref()),
    ]);
    await listening.close(REQUESTS_GRACE_MS);
    await scheduler.stop();
    if (!clusterWorker) await removeServerUrl(config);
    await opened.close();
    await app.tracer?.close();
    log.info("stopped");
  };
  return {
    opened,
    scheduler,
    baseUrl: app.baseUrl(),
    address: listening.address,
    localAddress: listening.localAddress,
    publishUrls: ingest.urls,
    setupUrl: setupCode && `${app.baseUrl()}/console/setup?code=${setupCode}`,
    stop: once(stop),
  };
}

async function startIngest(app: App, server: HttpServer): Promise<LiveIngest> {
  const { rtmp_port, rtmps_port, srt_port, whip_port } = app.config;
  const isLeader = app.peers === null || app.peers.slot === LEADER;
  const isOn = [rtmp_port, rtmps_port, srt_port, whip_port].some((port) => port !== undefined);
  if (isOn && app.peers && !isLeader) {
    new LiveRelay(app, app.peers).follow(LEADER);
    whipRequests(app).follow(LEADER);
  }
  if (!isOn || !isLeader) return { urls: [], stop: async () => {} };
  const { startLiveIngest } = await import("./live-ingest.ts");
  const ingest = await startLiveIngest(app);
  app.log.info({ urls: ingest.urls }, "receiving live streams");
  if (!app.peers) return ingest;
  // The processes share the port, and the system chooses one for each connection of a worker.
  const local = { ...app.config, host: "127.0.0.1", port: 0, tls_cert: undefined, tls_key: undefined };
  const own = await startListening(local, server, { log: app.log });
  await leadEncodes(app.peers, own.localAddress);
  const stop = async () => {
    await ingest.stop();
    await own.close(0);
  };
  return { ...ingest, stop };
}

async function startWorkers(app: App, address: string): Promise<LocalWorkers> {
  const { count } = localWorkerCount(app.config);
  if (count === 0) return { stop: async () => {} };
  const { startLocalWorkers } = await import("./local-workers.ts");
  return startLocalWorkers(app, { count, address });
}

/** A second signal must not stop twice. */
function once(work: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | undefined;
  return () => {
    running ??= work();
    return running;
  };
}

import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { Logger } from "pino";
import type { App } from "./app.ts";
import type { Config } from "./config/load.ts";
import { writeSecret } from "./config/secrets.ts";
import { allDuties } from "./duties/all.ts";
import { type Duties, startDuties } from "./duties/duty.ts";
import type { Clock } from "./lib/clock.ts";
import { startListening } from "./listen.ts";
import type { LocalWorkers } from "./local-workers.ts";
import { type Opened, openApp } from "./open.ts";
import { graceAfterStart } from "./resources/jobs/recover.ts";
import { knownChannels } from "./resources/live/known.ts";
import { joinServers } from "./resources/operator/servers.ts";

export type Running = {
  opened: Opened;
  duties: Duties;
  /** What every absolute address in an answer starts with. */
  baseUrl: string;
  /** The socket's own address. */
  address: string;
  /** Gives leases back, answers what is being asked, writes down what is in memory. Within 15 s. */
  stop(): Promise<void>;
};

export const SERVER_FILE = "server.json";
/** Together below the 15 s that a stop may take. */
const WORKERS_GRACE_MS = 9000;
const REQUESTS_GRACE_MS = 4000;

/** The whole server in this process; its local workers in their own. */
export async function serve(config: Config, { log, clock }: { log: Logger; clock?: Clock }): Promise<Running> {
  for (const warning of config.warnings) log.warn(warning);
  const opened = await openApp(config, { log, ...(clock && { clock }) });
  const { app, server, egress } = opened;
  await joinServers(app).catch(async (error) => {
    await opened.close();
    throw error;
  });
  const listening = await startListening(config, server, log).catch(async (error) => {
    await opened.close();
    throw error;
  });
  opened.listeningOn(listening.address);
  // Tells `vodbox admin` where this server is; whether it lives the lock tells.
  const serverFile = join(config.data_dir, SERVER_FILE);
  writeSecret(serverFile, JSON.stringify({ address: listening.localAddress, pid: process.pid }));
  await graceAfterStart(app);
  await knownChannels(app).refresh();
  const duties = startDuties(allDuties(app, { authenticator: server.authenticator, egress }), log);
  const workers = await startWorkers(app, listening.localAddress);
  log.info({ address: listening.address, data: config.data_dir, workers: config.workers }, "serving");

  const stop = async () => {
    log.info("stopping");
    opened.beginStop();
    listening.beginClose();
    // Workers first: they give their leases back through the door that is closed next.
    await Promise.race([workers.stop(), new Promise((resolve) => setTimeout(resolve, WORKERS_GRACE_MS).unref())]);
    await listening.close(REQUESTS_GRACE_MS);
    await duties.stop();
    await rm(serverFile, { force: true });
    await opened.close();
    log.info("stopped");
  };
  return { opened, duties, baseUrl: app.baseUrl(), address: listening.address, stop: once(stop) };
}

async function startWorkers(app: App, address: string): Promise<LocalWorkers> {
  if (app.config.workers === 0) return { stop: async () => {} };
  const { startLocalWorkers } = await import("./local-workers.ts");
  return startLocalWorkers(app, { count: app.config.workers, address });
}

/** A second signal while stopping must not stop twice. */
function once(work: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | undefined;
  return () => {
    running ??= work();
    return running;
  };
}

import type { Command } from "commander";
import { RecentLines } from "#lib/base";
import { type ClusterWorker, joinSupervisor } from "#platform/cluster/cluster-worker.ts";
import { createLog, logProcess } from "#src/log.ts";
import { type Running, serve } from "#src/serve.ts";
import { serviceNotices, signsOf } from "#src/systemd.ts";
import { startTracing } from "#src/tracing.ts";
import { line, printSetupUrl } from "./print.ts";
import { settingsOf } from "./settings.ts";
import { onStopSignal } from "./signals.ts";

export async function serveCommand(command: Command): Promise<void> {
  // First, because its membership is not a setting.
  const clusterWorker = await joinSupervisor();
  if (clusterWorker) return serveAsOne(command, clusterWorker);
  const config = settingsOf(command);
  if (config.processes > 1) return (await import("./serve-cluster.ts")).serveCluster(config);
  const recentLines = new RecentLines();
  const log = await createLog(config, recentLines);
  logProcess(log);
  // Before workers are started, which would inherit its socket from the environment.
  const notices = serviceNotices(process.env, log);
  const tracer = await startTracing("serve", log);
  const running = await serve(config, { log, recentLines, tracer, ...allowances(command) });
  onStopSignal(
    async () => {
      await Promise.all([notices.stopping(), running.stop()]);
      process.exit(0);
    },
    { isLogged: true },
  );
  line(`vodbox ready on ${running.baseUrl}`);
  line(`listening on ${running.address}`);
  for (const url of running.publishUrls) line(`live streams to ${url}`);
  printSetupUrl(running.setupUrl);
  notices.serving(signsOf(running));
}

/** A cluster worker: the supervisor prints the URL, and stops it. */
async function serveAsOne(command: Command, clusterWorker: ClusterWorker): Promise<void> {
  const running = await startAsOne(command, clusterWorker).catch((error) => {
    clusterWorker.leave();
    throw error;
  });
  onStopSignal(
    async () => {
      await running.stop();
      process.exit(0);
    },
    { secondAtOnce: false, isLogged: true },
  );
  const { address, localAddress, setupUrl, publishUrls } = running;
  clusterWorker.ready({ address, localAddress, setupUrl, publishUrls });
}

async function startAsOne(command: Command, clusterWorker: ClusterWorker): Promise<Running> {
  const config = settingsOf(command);
  const recentLines = new RecentLines();
  const log = (await createLog(config, recentLines)).child({ process: clusterWorker.slot });
  logProcess(log);
  const tracer = await startTracing("serve", log);
  return serve(config, { log, recentLines, tracer, clusterWorker, ...allowances(command) });
}

const allowances = (command: Command) => ({
  allowEmptyDatabase: command.opts<{ allowEmptyDatabase?: boolean }>().allowEmptyDatabase === true,
});

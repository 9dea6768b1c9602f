import type { Command } from "commander";
import { type ClusterWorker, joinSupervisor } from "../src/cluster/cluster-worker.ts";
import { createLog, logProcess } from "../src/log.ts";
import { type Running, serve } from "../src/serve.ts";
import { serviceNotices, signsOf } from "../src/systemd.ts";
import { line } from "./print.ts";
import { settingsOf } from "./settings.ts";
import { onStopSignal } from "./signals.ts";

export async function serveCommand(command: Command): Promise<void> {
  // First, since what it is told of its place is no setting.
  const clusterWorker = await joinSupervisor();
  if (clusterWorker) return serveAsOne(command, clusterWorker);
  const config = settingsOf(command);
  if (config.processes > 1) return (await import("./serve-cluster.ts")).serveCluster(config);
  const log = await createLog(config);
  logProcess(log);
  // Before workers are started, who would have its socket from the environment.
  const notices = serviceNotices(process.env, log);
  const running = await serve(config, { log, ...allowances(command) });
  onStopSignal(
    async () => {
      await Promise.all([notices.stopping(), running.stop()]);
      process.exit(0);
    },
    { isLogged: true },
  );
  line(`vodbox ready on ${running.baseUrl}`);
  line(`listening on ${running.address}`);
  notices.serving(signsOf(running));
}

/** One of several: who started it prints where they are, and stops it. */
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
  clusterWorker.ready({ address: running.address, localAddress: running.localAddress });
}

async function startAsOne(command: Command, clusterWorker: ClusterWorker): Promise<Running> {
  const config = settingsOf(command);
  const log = (await createLog(config)).child({ process: clusterWorker.slot });
  logProcess(log);
  return serve(config, { log, clusterWorker, ...allowances(command) });
}

const allowances = (command: Command) => ({
  allowEmptyDatabase: command.opts<{ allowEmptyDatabase?: boolean }>().allowEmptyDatabase === true,
});

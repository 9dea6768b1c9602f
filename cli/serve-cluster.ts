import { existsSync } from "node:fs";
import { finishRestore } from "#features/operations/backup/resume-restore.ts";
import { StartFailed, Supervisor } from "#platform/cluster/supervisor.ts";
import { databaseFileOf } from "#platform/config/database-file.ts";
import type { Config } from "#platform/config/load.ts";
import { ensureDataDir } from "#platform/config/secrets.ts";
import { removeServerUrl, writeServerUrl } from "#platform/config/server-file.ts";
import { crossValidate } from "#src/cross-validate.ts";
import { freePort } from "#src/listen.ts";
import { createLog, logProcess } from "#src/log.ts";
import { serviceNotices } from "#src/systemd.ts";
import { usableTls } from "#src/tls.ts";
import { acquireDataLock } from "#storage/db/lock.ts";
import { checkpointOnClose } from "#storage/db/open.ts";
import { line, printSetupUrl } from "./print.ts";
import { onStopSignal } from "./signals.ts";

/** `serve --processes`: this process holds the data directory and supervises the serving processes. */
export async function serveCluster(config: Config): Promise<void> {
  const log = await createLog(config);
  logProcess(log);
  const notices = serviceNotices(process.env, log);
  await crossValidate(config, usableTls);
  ensureDataDir(config.data_dir);
  const lock = acquireDataLock(config.data_dir);
  await finishRestore(config.data_dir);
  const port = await freePort(config);
  let listening = { address: "", localAddress: "" };
  let setupUrl: string | null = null;
  let publishUrls: string[] = [];
  const supervisor = new Supervisor({
    count: config.processes,
    log,
    argsOf: (slot) => [
      ...process.argv.slice(2),
      ...["--port", String(port)],
      ...(slot === 0 ? [] : ["--workers", "0"]),
    ],
    onReady(where) {
      listening = where;
      setupUrl ??= where.setupUrl;
      publishUrls = where.publishUrls;
      writeServerUrl(config, where.localAddress);
    },
  });
  const stop = async () => {
    await Promise.all([notices.stopping(), supervisor.stop()]);
    await removeServerUrl(config);
    const file = databaseFileOf(config);
    if (file !== null && existsSync(file)) await checkpointOnClose(file, log);
    lock.release();
    process.exit(0);
  };
  onStopSignal(stop, { isLogged: true });
  try {
    await supervisor.start();
  } catch (error) {
    lock.release();
    // It has logged the reason itself.
    if (!(error instanceof StartFailed)) throw error;
    process.exitCode = error.exitCode;
    return;
  }
  const baseUrl = config.base_url ?? listening.address;
  line(`vodbox ready on ${baseUrl}`);
  line(`listening on ${listening.address}`);
  for (const url of publishUrls) line(`live streams to ${url}`);
  printSetupUrl(setupUrl);
  notices.serving({
    status: `Serving ${baseUrl} with ${config.processes} processes`,
    isReady: async () => (await fetch(`${listening.localAddress}/readyz`).catch(() => null))?.ok ?? false,
    // The supervisor watches the serving processes, so here only its own event loop is reported.
    requireAlive: async () => {},
  });
}

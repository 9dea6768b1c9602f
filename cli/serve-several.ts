import { existsSync } from "node:fs";
import { databaseFileOf } from "../src/config/database-file.ts";
import type { Config } from "../src/config/load.ts";
import { ensureDataDir } from "../src/config/secrets.ts";
import { forgetAddress, tellAddress } from "../src/config/server-file.ts";
import { checkTogether } from "../src/config/together.ts";
import { freePort } from "../src/listen.ts";
import { createLog, logProcess } from "../src/log.ts";
import { Keeper, StartFailed } from "../src/processes/keeper.ts";
import { finishRestore } from "../src/resources/operator/backup/unfinished.ts";
import { serviceNotices } from "../src/systemd.ts";
import { usableTls } from "../src/tls.ts";
import { acquireDataLock } from "../storage/db/lock.ts";
import { leaveWhole } from "../storage/db/open.ts";
import { line } from "./print.ts";
import { onStopSignal } from "./signals.ts";

/** `serve --processes`: this process holds the data directory and keeps those that serve. */
export async function serveSeveral(config: Config): Promise<void> {
  const log = await createLog(config);
  logProcess(log);
  const notices = serviceNotices(process.env, log);
  checkTogether(config, usableTls);
  ensureDataDir(config.data_dir);
  const lock = acquireDataLock(config.data_dir);
  await finishRestore(config.data_dir);
  const port = await freePort(config);
  let listening = { address: "", localAddress: "" };
  const keeper = new Keeper({
    count: config.processes,
    log,
    argsOf: (slot) => [
      ...process.argv.slice(2),
      ...["--port", String(port)],
      ...(slot === 0 ? [] : ["--workers", "0"]),
    ],
    onReady(where) {
      listening = where;
      tellAddress(config, where.localAddress);
    },
  });
  const stop = async () => {
    await Promise.all([notices.stopping(), keeper.stop()]);
    await forgetAddress(config);
    const file = databaseFileOf(config);
    if (file !== null && existsSync(file)) await leaveWhole(file, log);
    lock.release();
    process.exit(0);
  };
  onStopSignal(stop, { isLogged: true });
  try {
    await keeper.start();
  } catch (error) {
    lock.release();
    // It has said why on its own.
    if (!(error instanceof StartFailed)) throw error;
    process.exitCode = error.exitCode;
    return;
  }
  const baseUrl = config.base_url ?? listening.address;
  line(`vodbox ready on ${baseUrl}`);
  line(`listening on ${listening.address}`);
  notices.serving({
    status: `Serving ${baseUrl} with ${config.processes} processes`,
    isReady: async () => (await fetch(`${listening.localAddress}/readyz`).catch(() => null))?.ok ?? false,
    // Those that serve are watched by the keeper; that it turns is all that is left to tell.
    requireAlive: async () => {},
  });
}

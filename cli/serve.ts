import type { Command } from "commander";
import { createLog, logProcess } from "../src/log.ts";
import { joinKeeper, type Member } from "../src/processes/member.ts";
import { type Running, serve } from "../src/serve.ts";
import { serviceNotices, signsOf } from "../src/systemd.ts";
import { line } from "./print.ts";
import { settingsOf } from "./settings.ts";
import { onStopSignal } from "./signals.ts";

export async function serveCommand(command: Command): Promise<void> {
  // First, since what it is told of its place is no setting.
  const member = await joinKeeper();
  if (member) return serveAsOne(command, member);
  const config = settingsOf(command);
  if (config.processes > 1) return (await import("./serve-several.ts")).serveSeveral(config);
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
async function serveAsOne(command: Command, member: Member): Promise<void> {
  const running = await startAsOne(command, member).catch((error) => {
    member.leave();
    throw error;
  });
  onStopSignal(
    async () => {
      await running.stop();
      process.exit(0);
    },
    { secondAtOnce: false, isLogged: true },
  );
  member.ready({ address: running.address, localAddress: running.localAddress });
}

async function startAsOne(command: Command, member: Member): Promise<Running> {
  const config = settingsOf(command);
  const log = (await createLog(config)).child({ process: member.slot });
  logProcess(log);
  return serve(config, { log, member, ...allowances(command) });
}

const allowances = (command: Command) => ({
  allowEmptyDatabase: command.opts<{ allowEmptyDatabase?: boolean }>().allowEmptyDatabase === true,
});

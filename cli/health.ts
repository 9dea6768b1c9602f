import type { Command } from "commander";
import { abortAfter, UserError, withoutTrailing } from "#lib/base";
import { describeConnectionError } from "#lib/network";
import { runningServerUrl } from "#platform/config/server-file.ts";
import { line, printJson } from "./print.ts";
import { settingsOf, wantsJson } from "./settings.ts";

/** Longer than any server that works takes, and shorter than the timeout of a container's health check. */
const TIMEOUT_MS = 5000;

/** For health checks of containers that have neither a shell nor curl. Only reads; exits 1 unless the server is ready. */
export async function healthCommand(command: Command): Promise<void> {
  const config = settingsOf(command);
  const { server } = command.opts<{ server?: string }>();
  const base = server ?? runningServerUrl(config);
  if (base === null) throw new UserError(`No server runs on ${config.data_dir}.`);
  const response = await fetch(`${withoutTrailing(base, "/")}/readyz`, {
    signal: abortAfter(TIMEOUT_MS),
  }).catch((error: Error) => {
    throw new UserError(describeConnectionError(base, error));
  });
  if (!response.ok) throw new UserError(`${base} is not ready: ${response.status} ${await response.text()}`);
  if (wantsJson(command)) printJson({ status: "ready" });
  else line("ready");
}

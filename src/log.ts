import { format, stripVTControlCharacters } from "node:util";
import pino, { type DestinationStream, type Logger } from "pino";
import { type RecentLines, withoutStatement } from "#lib/base";
import type { Config } from "#platform/config/load.ts";

/**
 * Logs to stderr, so that stdout contains only output. Requests are logged by route, never by URL: URLs contain tokens.
 * Redaction is a second safeguard; secrets must not be passed to the logger. `recent` receives every line too, as JSON.
 */
export async function createLog(
  config: Pick<Config, "log_level" | "log_format">,
  recent?: RecentLines,
): Promise<Logger> {
  const format = config.log_format ?? (process.stderr.isTTY ? "pretty" : "json");
  const options = {
    level: config.log_level,
    base: undefined,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (level: string) => ({ level }) },
    serializers: { err: (error: Error) => pino.stdSerializers.err(withoutStatement(error)) },
    redact: [
      "token",
      "*.token",
      "secret",
      "*.secret",
      "password",
      "*.password",
      "private_key",
      "*.private_key",
      "headers",
    ],
  };
  const stderr = format === "json" ? pino.destination({ dest: 2, sync: true }) : await prettyStderr();
  if (!recent) return pino(options, stderr);
  return pino(options, {
    write(line) {
      stderr.write(line);
      recent.write(line);
    },
  });
}

async function prettyStderr(): Promise<DestinationStream> {
  const { default: pretty } = await import("pino-pretty");
  return pretty({ destination: 2, sync: true, translateTime: "SYS:HH:MM:ss", ignore: "pid,hostname" });
}

/**
 * Routes everything this process would print to `log`: Node's warnings, uncaught errors, which still end the process
 * with exit code 1, and output of libraries. For `serve` and `worker`, whose stderr is read by machines; once per
 * process.
 */
export function logProcess(log: Logger): void {
  // Node's own listener prints text.
  process.removeAllListeners("warning");
  process.on("warning", (warning: Error & { code?: string }) =>
    log.warn({ warning: warning.name, code: warning.code, stack: warning.stack }, warning.message),
  );
  process.on("uncaughtException", (error: unknown, origin) => {
    log.fatal(
      { err: error instanceof Error ? error : new Error(String(error)), origin },
      "the process exits after a fatal error",
    );
    process.exit(1);
  });
  const to =
    (level: "debug" | "info" | "warn" | "error") =>
    (...values: unknown[]) =>
      log[level](stripVTControlCharacters(format(...values)));
  const printed = { log: to("info"), info: to("info"), warn: to("warn"), error: to("error") };
  Object.assign(globalThis.console, { ...printed, debug: to("debug"), trace: to("debug") });
}

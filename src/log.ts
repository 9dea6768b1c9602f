import { format, stripVTControlCharacters } from "node:util";
import pino, { type Logger } from "pino";
import type { Config } from "./config/load.ts";

/**
 * To stderr, so that stdout keeps to answers. Requests are logged by their route, never by their address: addresses
 * hold tokens. What is redacted here must never get this far; it is the second lock on the door.
 */
export async function createLog(config: Pick<Config, "log_level" | "log_format">): Promise<Logger> {
  const format = config.log_format ?? (process.stderr.isTTY ? "pretty" : "json");
  const options = {
    level: config.log_level,
    base: undefined,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (level: string) => ({ level }) },
    serializers: { err: (error: Error) => pino.stdSerializers.err(withoutParameters(error)) },
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
  if (format === "json") return pino(options, pino.destination({ dest: 2, sync: true }));
  const { default: pretty } = await import("pino-pretty");
  return pino(options, pretty({ destination: 2, sync: true, translateTime: "SYS:HH:MM:ss", ignore: "pid,hostname" }));
}

/**
 * From now on what this process would print by itself goes to `log`: Node's warnings, an error that nobody caught, which
 * still ends the process with exit code 1, and what a library prints. For `serve` and `worker`, whose stderr
 * is read by machines; once a process.
 */
export function logProcess(log: Logger): void {
  // Node's own listener prints text.
  process.removeAllListeners("warning");
  process.on("warning", (warning: Error & { code?: string }) =>
    log.warn({ warning: warning.name, code: warning.code, stack: warning.stack }, warning.message),
  );
  process.on("uncaughtException", (error: unknown, origin) => {
    log.fatal({ err: error instanceof Error ? error : new Error(String(error)), origin }, "the process must end");
    process.exit(1);
  });
  const to =
    (level: "debug" | "info" | "warn" | "error") =>
    (...values: unknown[]) =>
      log[level](stripVTControlCharacters(format(...values)));
  const printed = { log: to("info"), info: to("info"), warn: to("warn"), error: to("error") };
  Object.assign(globalThis.console, { ...printed, debug: to("debug"), trace: to("debug") });
}

/** Drizzle puts a query's parameters, token hashes among them, into the message; the cause says what went wrong. */
function withoutParameters(error: Error): Error {
  return error.name === "DrizzleQueryError" || error.message?.startsWith("Failed query:")
    ? ((error.cause as Error) ?? new Error("A query failed"))
    : error;
}

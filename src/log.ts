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

/** Drizzle puts a query's parameters, token hashes among them, into the message; the cause says what went wrong. */
function withoutParameters(error: Error): Error {
  return error.name === "DrizzleQueryError" || error.message?.startsWith("Failed query:")
    ? ((error.cause as Error) ?? new Error("A query failed"))
    : error;
}

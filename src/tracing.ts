import { UserError } from "#lib/base";
import { programVersion } from "#lib/executable";
import type { Tracer } from "#lib/tracing";
import type { Warnings } from "./otel.ts";

const ENDPOINTS = ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"] as const;
const PROTOCOLS = ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"] as const;
const PROTOCOL = "http/protobuf";

/**
 * The tracer that the standard variables of OpenTelemetry describe, or null without an endpoint: then nothing of its SDK is
 * loaded. `role`: of the process, such as `serve`. Throws UserError for a value that is not supported.
 */
export async function startTracing(role: string, log: Warnings): Promise<Tracer | null> {
  const { env } = process;
  const name = ENDPOINTS.find((each) => env[each]);
  if (name === undefined || env.OTEL_SDK_DISABLED?.toLowerCase() === "true" || env.OTEL_TRACES_EXPORTER === "none")
    return null;
  if (!/^https?:$/.test(URL.parse(env[name] ?? "")?.protocol ?? ""))
    throw new UserError(`${name} must be an HTTP URL, such as http://127.0.0.1:4318.`, 2);
  const protocol = PROTOCOLS.map((each) => env[each]).find(Boolean) ?? PROTOCOL;
  if (protocol !== PROTOCOL) throw new UserError(`Traces are sent as ${PROTOCOL}; ${protocol} is not supported.`, 2);
  const { openTelemetry } = await import("./otel.ts");
  return openTelemetry({ env, version: programVersion(), role, log });
}

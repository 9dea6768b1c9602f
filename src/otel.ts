import {
  type Context,
  diag,
  SpanKind as Kind,
  ROOT_CONTEXT,
  SpanStatusCode,
  TraceFlags,
  trace,
} from "@opentelemetry/api";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import { detectResources, envDetector, resourceFromAttributes } from "@opentelemetry/resources";
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  type Sampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from "@opentelemetry/sdk-trace";
import { setTimeout, UserError } from "#lib/base";
import { formatTraceparent, parseTraceparent, type SpanKind, type SpanOptions, type Tracer } from "#lib/tracing";

/** Spans that wait to be sent; more are dropped. */
const MAX_WAITING = 2048;
const LIMITS = { attributeValueLengthLimit: 256, attributeCountLimit: 32, linkCountLimit: 1, eventCountLimit: 0 };
/** A stop does not wait longer for a collector. */
const CLOSE_MS = 2000;
/** A collector that is down is logged once in this time. */
const LOG_EVERY_MS = 10 * 60_000;

const KINDS: Record<SpanKind, Kind> = {
  internal: Kind.INTERNAL,
  server: Kind.SERVER,
  client: Kind.CLIENT,
  consumer: Kind.CONSUMER,
};

/** Takes what an operator is to know. */
export type Warnings = { warn(message: string): void };
type Env = Readonly<Record<string, string | undefined>>;
export type TracerOptions = { env: Env; version: string; role: string; log: Warnings };

/**
 * The tracer of OpenTelemetry, which sends OTLP over HTTP in protobuf, as the standard environment variables say: the exporter
 * reads those that begin with `OTEL_EXPORTER_OTLP_`. Throws UserError for values that are not supported.
 */
export function openTelemetry({ env, version, role, log }: TracerOptions): Tracer {
  logSeldom(log);
  const own = resourceFromAttributes({ "service.name": "vodbox", "service.version": version, "vodbox.role": role });
  const provider = new TracerProvider({
    sampler: samplerOf(env),
    resource: own.merge(detectResources({ detectors: [envDetector] })),
    spanLimits: LIMITS,
    spanProcessors: [
      new BatchSpanProcessor({
        exporter: new OTLPTraceExporter(),
        maxQueueSize: MAX_WAITING,
        scheduledDelayMillis: numberOf(env, "OTEL_BSP_SCHEDULE_DELAY", 5000),
      }),
    ],
  });
  const tracer = provider.getTracer("vodbox", version);
  return {
    start(name, { kind = "internal", attributes = {}, parent, isRemote = false, link }) {
      const linked = contextOf(link, true);
      const span = tracer.startSpan(
        name,
        { kind: KINDS[kind], attributes, links: linked ? [{ context: linked }] : [] },
        below(parent, isRemote),
      );
      const { traceId, spanId, traceFlags } = span.spanContext();
      return {
        traceparent: formatTraceparent({ traceId, spanId, isSampled: (traceFlags & TraceFlags.SAMPLED) !== 0 }),
        set: (more) => void span.setAttributes(more),
        fail: (type) => void span.setAttribute("error.type", type).setStatus({ code: SpanStatusCode.ERROR }),
        end: () => span.end(),
      };
    },
    async close() {
      const sent = provider.shutdown().catch(() => {});
      await Promise.race([sent, new Promise((resolve) => setTimeout(resolve, CLOSE_MS).unref())]);
    },
  };
}

function contextOf(traceparent: SpanOptions["parent"], isRemote: boolean) {
  const found = parseTraceparent(traceparent);
  if (!found) return null;
  const { traceId, spanId, isSampled } = found;
  return { traceId, spanId, traceFlags: isSampled ? TraceFlags.SAMPLED : TraceFlags.NONE, isRemote };
}

function below(parent: SpanOptions["parent"], isRemote: boolean): Context {
  const found = contextOf(parent, isRemote);
  return found ? trace.setSpanContext(ROOT_CONTEXT, found) : ROOT_CONTEXT;
}

function numberOf(env: Env, name: string, otherwise: number): number {
  const value = Number(env[name] || otherwise);
  if (!Number.isFinite(value) || value < 0) throw new UserError(`${name} must be a number, such as ${otherwise}.`, 2);
  return value;
}

/** `OTEL_TRACES_SAMPLER` and its argument, which the SDK itself does not read. */
function samplerOf(env: Env): Sampler {
  const ratio = () => {
    const share = numberOf(env, "OTEL_TRACES_SAMPLER_ARG", 1);
    if (share > 1) throw new UserError("OTEL_TRACES_SAMPLER_ARG must be a number from 0 to 1, such as 0.1.", 2);
    return new TraceIdRatioBasedSampler(share);
  };
  const samplers: Record<string, () => Sampler> = {
    always_on: () => new AlwaysOnSampler(),
    always_off: () => new AlwaysOffSampler(),
    traceidratio: ratio,
    parentbased_always_on: () => new ParentBasedSampler({ root: new AlwaysOnSampler() }),
    parentbased_always_off: () => new ParentBasedSampler({ root: new AlwaysOffSampler() }),
    parentbased_traceidratio: () => new ParentBasedSampler({ root: ratio() }),
  };
  const name = env.OTEL_TRACES_SAMPLER || "parentbased_always_on";
  const sampler = Object.hasOwn(samplers, name) ? samplers[name] : undefined;
  if (!sampler) throw new UserError(`OTEL_TRACES_SAMPLER must be one of ${Object.keys(samplers).join(", ")}.`, 2);
  return sampler();
}

/** Without what the SDK says: it contains URLs, and what a collector answered. */
function logSeldom(log: Warnings): void {
  let quietUntil = 0;
  const report = () => {
    if (performance.now() < quietUntil) return;
    quietUntil = performance.now() + LOG_EVERY_MS;
    log.warn("Traces could not be sent to the collector; some are lost.");
  };
  const ignore = () => {};
  diag.setLogger({ error: report, warn: report, info: ignore, debug: ignore, verbose: ignore });
}

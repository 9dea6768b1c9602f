import { continueTrace, inSpan } from "#lib/tracing";
import type { WorkerContract } from "#protocol/worker-client.ts";
import type { JobContext } from "./context.ts";

/** Runs a job in a span of the trace that queued it; without traces here, the server still learns what the job belongs to. */
export function inJobSpan<End extends string>(
  { job, task, clip, join, speech, traceparent }: WorkerContract,
  { tracer }: JobContext,
  work: () => Promise<End>,
): Promise<End> {
  if (!tracer) return traceparent ? continueTrace(traceparent, work) : work();
  const kind = speech ? "speech" : clip ? "clip" : join ? "join" : (task?.kind ?? "whole");
  const attributes = {
    "vodbox.job.id": job.id,
    "vodbox.job.kind": kind,
    "vodbox.job.attempt": job.attempt,
    "vodbox.asset.id": job.asset_id,
    ...(task && { "vodbox.task.id": task.id }),
  };
  const parent = traceparent ?? null;
  return inSpan(tracer, `job ${kind}`, { kind: "consumer", attributes, parent, isRemote: true }, async (span) => {
    const end = await work();
    span.set({ "vodbox.job.end": end });
    if (end === "failed") span.fail("job_failed");
    return end;
  });
}

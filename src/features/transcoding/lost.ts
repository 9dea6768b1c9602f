import type { App } from "#app.ts";
import type { Fault } from "./lifecycle/attempts.ts";

/** Times in milliseconds: a lease is lost that expired before the first of them, started or progressed before the others. */
export type LostSince = { now: number; startedBefore: number; movedBefore: number };

/** Before any attempt. */
const NEVER = -1;

export function lostSince({ clock, config }: App): LostSince {
  const now = clock.now();
  return {
    now,
    startedBefore: config.job_timeout_seconds === 0 ? NEVER : now - config.job_timeout_seconds * 1000,
    movedBefore: now - config.job_stall_seconds * 1000,
  };
}

type Lease = { workerId: string | null; leaseExpiresAt: number | null; startedAt: number | null };

/**
 * Why the lease of a job or a task is lost. One that has reached the time limit is not retried: the next attempt would
 * take as long.
 */
export function faultOfLost({ config }: App, lease: Lease, { now, startedBefore }: LostSince): Fault {
  const common = { logTail: null, outcome: "expired" as const };
  const worker = `The worker ${lease.workerId ?? "(unknown)"}`;
  if ((lease.leaseExpiresAt ?? 0) <= now)
    return { ...common, code: "lease_expired", message: `${worker} missed its heartbeat.`, retryable: true };
  if ((lease.startedAt ?? now) <= startedBefore)
    return {
      ...common,
      code: "time_limit_exceeded",
      message: `The attempt took longer than ${config.job_timeout_seconds} s.`,
      retryable: false,
    };
  return {
    ...common,
    code: "stalled",
    message: `${worker} made no progress for ${config.job_stall_seconds} s.`,
    retryable: true,
  };
}

import type { TASK_STATUSES } from "#model/enums.ts";

export type TaskStatus = (typeof TASK_STATUSES)[number];

/**
 * Every change of the status of a task. No event reports it: to the API nothing changes until the job does. A status
 * that is not in `from` is not a legal one to start from.
 */
export const TASK_TRANSITIONS = {
  /** All that it needs is in storage. */
  queue: { from: ["waiting"], to: "queued" },
  /** A worker leases it. */
  lease: { from: ["queued"], to: "running" },
  progress: { from: ["running"], to: "running" },
  complete: { from: ["running"], to: "completed" },
  /** It was released, or failed with attempts left. */
  requeue: { from: ["running"], to: "queued" },
  /** The last attempt failed, or the failure is permanent. */
  fail: { from: ["running"], to: "failed" },
  /** Its result is not needed: the attempt of the job has ended, or another task replaces it. */
  cancel: { from: ["waiting", "queued", "running"], to: "canceled" },
} as const satisfies Record<string, { from: readonly TaskStatus[]; to: TaskStatus }>;

export type TaskTransitionName = keyof typeof TASK_TRANSITIONS;

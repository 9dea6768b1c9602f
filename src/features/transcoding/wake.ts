import { forApp } from "#app.ts";

/** The effect of a commit that queues a job or a task: one request that waits for a job looks again. */
export const workerWaker = forApp((app) => () => void app.signals.emit("job.queued"));

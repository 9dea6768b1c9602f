/** The color of a delivery's badge. */
export const COLORS = { pending: "processing", delivered: "ready", failed: "errored", skipped: "queued" };

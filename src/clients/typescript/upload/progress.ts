export type UploadProgress = {
  /** Bytes that were sent, including those of an earlier, interrupted call. */
  bytesSent: number;
  bytesTotal: number;
  /** Over the last seconds; 0 until it is known. */
  bytesPerSecond: number;
  /** Estimate; null until the speed is known. */
  secondsRemaining: number | null;
};

const WINDOW_MS = 5000;
const INTERVAL_MS = 100;

/** Reports the position of an upload at most ten times per second, and its end. */
export function createProgress(total: number, report: (progress: UploadProgress) => void) {
  let samples: { at: number; bytes: number }[] = [];
  let reportedAt = Number.NEGATIVE_INFINITY;
  return (bytes: number): void => {
    const now = performance.now();
    const isEnd = bytes === total;
    if (now - reportedAt < INTERVAL_MS && !isEnd) return;
    reportedAt = now;
    // After a failure the position is the server's, which may be an earlier one.
    if (bytes < (samples.at(-1)?.bytes ?? 0)) samples = [];
    samples.push({ at: now, bytes });
    while (samples.length > 2 && now - (samples[1] as { at: number }).at > WINDOW_MS) samples.shift();
    const [first] = samples as [{ at: number; bytes: number }];
    const seconds = (now - first.at) / 1000;
    const bytesPerSecond = seconds > 0 ? (bytes - first.bytes) / seconds : 0;
    const secondsRemaining = isEnd ? 0 : bytesPerSecond > 0 ? (total - bytes) / bytesPerSecond : null;
    report({ bytesSent: bytes, bytesTotal: total, bytesPerSecond, secondsRemaining });
  };
}

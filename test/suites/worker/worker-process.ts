import { startWorker } from "#worker/loop.ts";

/**
 * A worker in its own process, for tests that kill it. Arguments: server, token, scratch directory, ffmpeg, ffprobe.
 */
const [server = "", token = "", scratchDir = "", ffmpeg = "", ffprobe = ""] = process.argv.slice(2);
const stop = new AbortController();
process.once("SIGTERM", () => stop.abort());
const say = (fields: Record<string, unknown>, message: string) => console.error(message, JSON.stringify(fields));
await startWorker({
  server,
  token: () => token,
  scratchDir,
  binaries: { ffmpeg, ffprobe },
  workerId: `test-${process.pid}`,
  log: { info: say, warn: say, error: say },
  signal: stop.signal,
});

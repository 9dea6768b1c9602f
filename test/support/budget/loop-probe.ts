import { createServer } from "node:net";
import { isMainThread } from "node:worker_threads";

/**
 * Loaded into a server with `--import`: reports the processor time of its event loop on a local socket. Unlike the clock, it does
 * not count what other programs do meanwhile. The kernel's own figures have steps of 10 ms.
 */
export type LoopReport = {
  /** Since the start, in ms. */
  cpuMs: number;
  /** The longest time without a timer since the report before, in ms. */
  longestMs: number;
};

const path = process.env.VODBOX_TEST_LOOP_PROBE;
const SAMPLE_MS = 1;

if (path && isMainThread) {
  const cpuMs = () => {
    const { user, system } = process.threadCpuUsage();
    return (user + system) / 1000;
  };
  let last = cpuMs();
  let longestMs = 0;
  const sample = () => {
    const now = cpuMs();
    longestMs = Math.max(longestMs, now - last);
    last = now;
  };
  setInterval(sample, SAMPLE_MS).unref();
  const server = createServer((socket) => {
    socket.on("error", () => {});
    socket.on("data", () => {
      sample();
      const report: LoopReport = { cpuMs: last, longestMs };
      socket.write(`${JSON.stringify(report)}\n`);
      longestMs = 0;
      last = cpuMs();
    });
  });
  server.listen(path).unref();
}

/**
 * Milliseconds of processor time that this thread spends on `work`, which is synchronous. Unlike the clock, it does not
 * count what other programs do meanwhile.
 */
export function processorMs(work: () => unknown): number {
  const from = process.threadCpuUsage();
  work();
  const { user, system } = process.threadCpuUsage(from);
  return (user + system) / 1000;
}

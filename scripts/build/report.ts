/** Build progress: one line per step, and a bar on a terminal (a line every ten seconds elsewhere) for long ones. */
export async function step<T>(title: string, work: () => Promise<T> | T): Promise<T> {
  const started = performance.now();
  const result = await work();
  console.log(`${title} (${((performance.now() - started) / 1000).toFixed(1)} s)`);
  return result;
}

export function bar(title: string, total: number): { advance(): void; end(): void } {
  const terminal = process.stdout.isTTY;
  let done = 0;
  let shown = 0;
  const show = (now: number) => {
    const share = Math.min(1, done / Math.max(1, total));
    const percent = `${Math.floor(share * 100)}`.padStart(3);
    const drawn = "#".repeat(Math.round(share * 30)).padEnd(30, ".");
    process.stdout.write(terminal ? `\r${title} [${drawn}] ${percent} %` : `${title} ${percent} %\n`);
    shown = now;
  };
  return {
    advance() {
      done += 1;
      const now = performance.now();
      if (now - shown > (terminal ? 100 : 10_000)) show(now);
    },
    end() {
      if (terminal) process.stdout.write("\r\x1b[K");
    },
  };
}

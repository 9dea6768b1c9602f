import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { startWorker, type WorkerOptions } from "#worker/loop.ts";
import type { JobEnd } from "#worker/run-job.ts";
import type { TestApp } from "./app.ts";
import { emptyFolder } from "./folder.ts";
import { binaries, ffmpeg } from "./media/sources.ts";

/** The program on a port of the loopback interface, for clients that need an address. */
export async function onPort(app: TestApp): Promise<{ base: string } & AsyncDisposable> {
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const answer = await app.opened.server.fetch(
      new Request(new URL(request.url ?? "/", "http://vodbox.test"), {
        method: request.method ?? "GET",
        headers: request.headers as Record<string, string>,
        ...(chunks.length > 0 && { body: Buffer.concat(chunks) }),
      }),
    );
    response.writeHead(answer.status, Object.fromEntries(answer.headers));
    response.end(Buffer.from(await answer.arrayBuffer()));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    base: `http://127.0.0.1:${port}`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Runs the next job with the real worker; null when there is none. On the server's disk with `dataDir`. */
export async function workOnce(app: TestApp, options: Partial<WorkerOptions> = {}): Promise<JobEnd | null> {
  await using server = await onPort(app);
  const lines: string[] = [];
  const log = (fields: Record<string, unknown>, message: string) => {
    lines.push(`${message} ${JSON.stringify(fields)}`);
  };
  const end = await startWorker({
    server: server.base,
    token: () => app.worker,
    workerId: "real",
    binaries,
    isOnce: true,
    scratchDir: join(emptyFolder(), "scratch"),
    signal: new AbortController().signal,
    log: { info: () => {}, warn: log, error: log },
    ...options,
  });
  if (end !== null && end !== "completed") throw new Error(`${end}: ${lines.join("\n")}`);
  return end;
}

/** Similarity of each frame of a file with the same one of another one, from its frame `from` on, in dB. */
export async function similarity(file: string, other: string, from: number, count: number): Promise<number[]> {
  const graph = `[1:v]trim=start_frame=${from}:end_frame=${from + count},setpts=PTS-STARTPTS[a];[0:v]setpts=PTS-STARTPTS[b];[b][a]psnr=stats_file=-`;
  const stats = (await ffmpeg("-i", file, "-i", other, "-lavfi", graph, "-f", "null", "-")).toString();
  return [...stats.matchAll(/psnr_avg:(\S+)/g)].map(([, value]) => (value === "inf" ? 100 : Number(value)));
}

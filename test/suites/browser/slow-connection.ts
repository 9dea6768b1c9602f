import { request as ask, createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

const STEP_MS = 20;

export type SlowLine = {
  base: string;
  /** Media segments, in the order of their requests. */
  asked: { path: string; status: number }[];
  /** Sets the rate of one segment at a time, from now on, including those in progress. */
  setKilobits(perSecond: number): void;
  /** From now on requests with this token get no response, as if it had expired. */
  refuse(token: string): void;
  close(): void;
};

/**
 * A relay to the server at `base`; segments arrive at the configured rate, however fast the machine and its browser
 * are.
 */
export async function startSlowLine(base: string, kilobits: number): Promise<SlowLine> {
  let bytesPerStep = 0;
  const setKilobits = (perSecond: number) => {
    bytesPerStep = Math.max(1, Math.round((perSecond * STEP_MS) / 8));
  };
  setKilobits(kilobits);
  const asked: SlowLine["asked"] = [];
  let refused: string | null = null;
  /** There is one connection: a second request waits. */
  const waiting: (() => void)[] = [];
  let timer: NodeJS.Timeout | undefined;

  function pace(body: Buffer, response: ServerResponse): void {
    let sent = 0;
    let budget = 0;
    let before = performance.now();
    const step = () => {
      const now = performance.now();
      // Compensates for late timers.
      budget += ((now - before) / STEP_MS) * bytesPerStep;
      before = now;
      const most = Math.floor(budget);
      budget -= most;
      if (most > 0) response.write(body.subarray(sent, sent + most));
      sent += most;
      if (sent < body.length && !response.destroyed) {
        timer = setTimeout(step, STEP_MS);
        return;
      }
      response.end();
      waiting.shift();
      waiting[0]?.();
    };
    waiting.push(() => {
      before = performance.now();
      step();
    });
    if (waiting.length === 1) waiting[0]?.();
  }

  const server = createServer((request, response) => {
    const path = request.url ?? "/";
    if (refused !== null && path.includes(refused)) {
      asked.push({ path, status: 403 });
      return response.writeHead(403, { "access-control-allow-origin": "*" }).end();
    }
    const onward = ask(new URL(path, base), { method: request.method, headers: request.headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      if (!path.endsWith(".m4s")) return answer.pipe(response);
      asked.push({ path, status: answer.statusCode ?? 502 });
      return whole(answer).then((body) => pace(body, response));
    });
    onward.on("error", () => response.destroy());
    return request.pipe(onward);
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  return {
    base: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    setKilobits,
    refuse(token) {
      refused = token;
    },
    close() {
      clearTimeout(timer);
      server.closeAllConnections();
      server.close();
    },
  };
}

async function whole(answer: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of answer) chunks.push(chunk);
  return Buffer.concat(chunks);
}

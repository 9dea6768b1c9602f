import { connect } from "node:net";
import { ATTACKER, type HostileAttack, repeatedly, type Target } from "./attack.ts";

const REQUESTS = 2000;

/** Sends all requests at once on one connection. Resolves when it is closed. */
function pipeline({ base }: Target, text: string, { signal, reads, leavesAfterMs }: Options): Promise<void> {
  const { hostname, port } = new URL(base);
  return new Promise((resolve) => {
    const socket = connect({ port: Number(port), host: hostname, localAddress: ATTACKER }, () => socket.write(text));
    if (reads) socket.resume();
    else socket.pause();
    const leave = () => socket.destroy();
    const timer = leavesAfterMs === undefined ? undefined : setTimeout(leave, leavesAfterMs);
    // The length of each response is not parsed: a connection is replaced when it has read enough.
    signal.addEventListener("abort", leave, { once: true });
    socket.on("error", () => {});
    socket.on("close", () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", leave);
      resolve();
    });
  });
}
type Options = { signal: AbortSignal; reads: boolean; leavesAfterMs?: number };

const get = (path: string) => `GET ${path} HTTP/1.1\r\nhost: x\r\n\r\n`;
const post = `POST /api/v1/uploads/initiate HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n${"x".repeat(1000)}`;
const MIXES: Record<string, string> = {
  "openapi.json": get("/api/v1/openapi.json"),
  "scalar.js": get("/docs/scalar.js"),
  "openapi.json and POST alternately": get("/api/v1/openapi.json") + post,
};

export const pipelining: HostileAttack[] = Object.entries(MIXES).flatMap(([name, text]) => [
  {
    name: `pipelined ${name}, read`,
    run: (target, signal) =>
      repeatedly(signal, 4, () =>
        pipeline(target, text.repeat(REQUESTS), { signal, reads: true, leavesAfterMs: 2000 }),
      ),
  },
  {
    name: `pipelined ${name}, never read`,
    run: (target, signal) =>
      repeatedly(signal, 50, () => pipeline(target, text.repeat(REQUESTS), { signal, reads: false })),
  },
  {
    name: `pipelined ${name}, left at once`,
    run: (target, signal) =>
      repeatedly(signal, 4, () => pipeline(target, text.repeat(REQUESTS), { signal, reads: true, leavesAfterMs: 50 })),
  },
]);

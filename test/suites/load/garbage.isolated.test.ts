import { once } from "node:events";
import { getHeapSpaceStatistics } from "node:v8";
import { Worker } from "node:worker_threads";
import pino from "pino";
import { expect, test } from "vitest";
import { startListening } from "#src/listen.ts";
import { testApp } from "#test/support/app.ts";
import { atEnd } from "#test/support/folder.ts";

const WARM = 6400;
const ASKED = 12_800;
const CONNECTIONS = 64;
const ROUNDS = 3;
const LOOK_MS = 5;
const LIMIT_BYTES = 1000;

/** Objects that survived two minor collections. */
const old = () => getHeapSpaceStatistics().find(({ space_name }) => space_name === "old_space")?.space_used_size ?? 0;

test("responses become garbage immediately: a minor collection retains nothing of them", async () => {
  const { opened } = await testApp();
  const place = {
    host: "127.0.0.1",
    port: 0,
    tls_cert: undefined,
    tls_key: undefined,
    connections_per_address: 1000,
    trusted_proxies: [],
  };
  const listening = await startListening(place, opened.server, { log: pino({ level: "silent" }) });
  // With a heap of its own: once something of Node's client is promoted, each of its requests keeps the next one.
  const client = new Worker(new URL("garbage-client.ts", import.meta.url), {
    workerData: { url: `${listening.address}/healthz`, connections: CONNECTIONS },
  });
  atEnd(async () => {
    await client.terminate();
    await listening.close(0);
  });
  /** The amount that was promoted meanwhile, even if a major collection frees it later. */
  const askAll = async (count: number) => {
    let moved = 0;
    let before = old();
    const look = () => {
      const now = old();
      moved += Math.max(0, now - before);
      before = now;
    };
    const timer = setInterval(look, LOOK_MS);
    client.postMessage(count);
    const [statuses] = await once(client, "message");
    clearInterval(timer);
    look();
    expect(statuses).toEqual([200]);
    return moved / count;
  };
  await askAll(WARM);
  // A major collection that V8 happens to run meanwhile moves what is in progress; what is retained is so in every round.
  let kept = Number.POSITIVE_INFINITY;
  for (let round = 0; round < ROUNDS && kept >= LIMIT_BYTES; round++) {
    kept = await askAll(ASKED);
    console.log(`${Math.round(kept)} bytes of each answer were kept`);
  }
  expect(kept).toBeLessThan(LIMIT_BYTES);
});

import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { testApp } from "#test/support/app.ts";
import { until } from "#test/support/descendants.ts";
import { atEnd } from "#test/support/folder.ts";

const SLOW_ENDPOINTS = 100;
const EVENTS = 30;

/** One host for the endpoints of all tenants: `/fast` responds immediately, any other path when the test says so. */
async function sharedHost() {
  const waits: number[] = [];
  const held = new Set<ServerResponse>();
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request.setEncoding("utf8")) body += chunk;
    if (request.url !== "/fast") {
      held.add(response);
      response.on("close", () => held.delete(response));
      return;
    }
    waits.push(Date.now() - Date.parse(JSON.parse(body).created_at));
    response.end("thanks");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  atEnd(async () => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, waits, held };
}

test.each([1, 3])(
  "100 slow endpoints of each of %i tenants do not delay another tenant's on the same host",
  async (attackers) => {
    const host = await sharedHost();
    const app = await testApp({ webhook_allow_cidrs: "127.0.0.0/8", rate_limit_uploads: "100000/60" });
    app.opened.app.signals.on("delivery.due", () => void app.runTask("deliver-webhooks"));
    const tenantWith = async (urls: string[]) => {
      const key = await app.key((await app.tenant()).id);
      for (const url of urls) {
        const body = { url, event_types: ["video.track.ready"] };
        expect((await app.as(key).createWebhook(body)).status).toBe(201);
      }
      const upload = { filename: "a.mp4", bytes_expected: 1 };
      const { asset_id } = (await app.as(key).initiateUpload(upload)).body;
      let count = 0;
      return async () => {
        const body = { kind: "scene", name: `track-${++count}`, cues: [] };
        expect((await app.as(key).setTrack(asset_id, body)).status).toBe(201);
      };
    };
    const slow = Array.from({ length: SLOW_ENDPOINTS }, (_, index) => `${host.url}/slow/${index}`);
    const hostile: (() => Promise<void>)[] = [];
    for (let n = 0; n < attackers; n++) hostile.push(await tenantWith(slow));
    const normal = await tenantWith([`${host.url}/fast`]);
    for (const event of hostile) for (let n = 0; n < 6; n++) await event();
    // The largest number that the attackers can get.
    await until("the attack", () => host.held.size >= 48 * attackers);
    for (let n = 0; n < EVENTS; n++) {
      await normal();
      for (const event of hostile) await event();
      await until("the delivery of the normal tenant", () => host.waits.length > n);
    }
    const sorted = host.waits.toSorted((a, b) => a - b);
    console.info({ attackers, held: host.held.size, median: sorted[EVENTS / 2], max: sorted.at(-1) });
    // Without a limit for each tenant they would wait for attempts that end after 15 s. A busy machine delays some.
    expect(sorted[EVENTS / 2]).toBeLessThan(1000);
    expect(sorted.at(-1)).toBeLessThan(10_000);
    // Bounded in total, too.
    expect(host.held.size).toBeLessThanOrEqual(128 * attackers);
  },
);

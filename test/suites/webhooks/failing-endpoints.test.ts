import { fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { expect, test } from "vitest";
import { amount } from "#test/support/amount.ts";
import { testApp } from "#test/support/app.ts";
import { until } from "#test/support/descendants.ts";
import { atEnd } from "#test/support/folder.ts";
import { testSeed } from "#test/support/seed.ts";
import type { Report } from "./receivers.ts";

const EVENTS = amount(200, 500);
const ENDPOINTS = 20;
const SICK = ["fails half the time", "hangs", "drips", "closes early", "answers 10 MB"];

/** EVENTS at ENDPOINTS, some of which fail. Returns the times at the healthy ones, and at the failing ones. */
async function run(sick: string[]): Promise<{ healthy: Report; sick: Report; p99: number; ids: Set<string> }> {
  const kinds = [...Array(ENDPOINTS - sick.length).fill("healthy"), ...sick];
  const child = fork(join(import.meta.dirname, "receivers.ts"), [JSON.stringify(kinds), String(testSeed())]);
  atEnd(() => child.kill("SIGKILL"));
  const [urls] = (await once(child, "message")) as [string[]];
  const app = await testApp({ webhook_allow_cidrs: "127.0.0.0/8", webhook_retry_seconds: "1,1,1,1,1" });
  const key = await app.key((await app.tenant()).id);
  for (const url of urls) expect((await app.as(key).createWebhook({ url })).status).toBe(201);
  const upload = { filename: "a.mp4", bytes_expected: 1 };
  const { asset_id } = (await app.as(key).initiateUpload(upload)).body;
  app.opened.app.signals.on("delivery.due", () => void app.runTask("deliver-webhooks"));
  for (let name = 0; name < EVENTS; name++) {
    const body = { kind: "scene", name: `track-${name}`, cues: [] };
    expect((await app.as(key).setTrack(asset_id, body)).status).toBe(201);
  }
  const well = kinds.length - sick.length;
  const reported = await until("all at the healthy ones", async () => {
    child.send("report");
    const [report] = (await once(child, "message")) as [Report];
    return report.slice(0, well).every(({ ids }) => ids.length >= EVENTS) ? report : null;
  });
  const { events } = await import("#storage/db/schema.ts");
  const ids = new Set((await app.opened.app.db.select().from(events).all()).map(({ eventId }) => eventId));
  await app.close();
  const waits = reported.slice(0, well).flatMap((each) => each.waits);
  const p99 = waits.toSorted((a, b) => a - b)[Math.floor(waits.length * 0.99)] as number;
  return { healthy: reported.slice(0, well), sick: reported.slice(well), p99, ids };
}

test("receivers that hang, send slowly, break connections or send too much delay no other", async () => {
  const ratios: number[] = [];
  // A busy machine only adds to it: the best of three pairs is the effect of the failing endpoints.
  while (ratios.length < 3 && !ratios.some((ratio) => ratio < 2)) {
    const alone = await run([]);
    const beside = await run(SICK);
    console.log(`p99 of the healthy: ${alone.p99} ms alone, ${beside.p99} ms next to the failing ones`);
    for (const { healthy, ids } of [alone, beside]) {
      for (const each of healthy) {
        expect(each.ids).toHaveLength(EVENTS);
        expect(new Set(each.ids)).toEqual(ids);
      }
    }
    for (const [index, each] of beside.sick.entries()) expect(each.ids.length, SICK[index]).toBeGreaterThan(0);
    ratios.push(beside.p99 / alone.p99);
  }
  expect(Math.min(...ratios)).toBeLessThan(2);
});

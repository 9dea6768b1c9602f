import { join } from "node:path";
import pino from "pino";
import { viewsOf } from "#features/analytics/views.ts";
import { loadConfig } from "#platform/config/load.ts";
import { openApp } from "#src/open.ts";
import { ADMIN, call, startVodbox, workFolder } from "./processes.ts";
import { compare, p99, type Result } from "./result.ts";

const DAYS = 30;
const HOURS = DAYS * 24;
const ASSETS = 50;
const VIEWERS = 20_000;
const EVENTS_A_VIEW = 20;
const FEW = 10_000;
const MANY = 1_000_000;
const REQUESTS = 300;
const BAR_MS = 50;
const HOUR_MS = 3_600_000;

const QUERIES: Record<string, string> = {
  "of an asset": "/api/v1/assets/1/analytics",
  "of an asset, by hours, with retention": "/api/v1/assets/1/analytics?interval=hour&retention=true",
  "of a tenant, by days, with its top ten": "/api/v1/analytics?tenant_id=1&interval=day&top=10",
};

/** Summaries over a month of a million raw events, through the executable. */
export async function benchAnalytics(): Promise<Result[]> {
  const results: Result[] = [];
  const times: Record<string, number[][]> = {};
  for (const events of [FEW, MANY]) {
    const work = workFolder();
    try {
      const data = join(work.path, "data");
      await fill(data, events);
      const server = await startVodbox(data, { env: { VODBOX_PLAYBACK_EVENT_DAYS: "365" } });
      try {
        for (const [name, path] of Object.entries(QUERIES)) {
          times[name] ??= [];
          times[name].push(await timesOf(server.base, path));
        }
      } finally {
        await server.stop();
      }
    } finally {
      work.remove();
    }
  }
  for (const [name, [few = [], many = []]] of Object.entries(times)) {
    const note = `(of ${FEW} events: ${p99(few).toFixed(1)} ms)`;
    const about = { reference: "the promised 50 ms", unit: "ms", bar: { atMost: 1 }, note };
    results.push(compare(`summary ${name}, ${MANY} events, p99`, { ours: [p99(many)], theirs: [BAR_MS] }, about));
  }
  return results;
}

async function timesOf(base: string, path: string): Promise<number[]> {
  const times: number[] = [];
  for (let round = 0; round < REQUESTS; round++) {
    const from = performance.now();
    const { play_count } = await call<{ play_count: number }>(base, "GET", path);
    times.push(performance.now() - from);
    if (play_count === 0) throw new Error(`${path}: nothing was counted`);
  }
  return times;
}

/** Records a month of views at the time of each, with the program's code in this process and a controlled clock. */
async function fill(data: string, events: number): Promise<void> {
  const begin = Date.now() - HOURS * HOUR_MS;
  let now = begin;
  const config = loadConfig({ flags: { data_dir: data, port: 0, admin_token: ADMIN }, env: {} });
  const opened = await openApp(config, { log: pino({ level: "silent" }), clock: { now: () => now } });
  try {
    const { app, server } = opened;
    const post = async (path: string, body: unknown) => {
      const headers = { "content-type": "application/json", "x-svc-admin-token": ADMIN };
      const answer = await server.fetch(
        new Request(`http://bench${path}`, { method: "POST", headers, body: JSON.stringify(body) }),
      );
      if (!answer.ok) throw new Error(await answer.text());
    };
    await post("/api/v1/admin/tenants", { name: "Bench", slug: "bench" });
    for (let n = 0; n < ASSETS; n++)
      await post("/api/v1/assets", {
        tenant_id: 1,
        video_asset: {
          title: `Film ${n}`,
          input_status: "pending",
          playback_status: "draft",
          source_bytes: 1,
          storage_bytes: 0,
          duration_seconds: 200,
          source_key: `tenants/1/sources/${n}.mp4`,
        },
      });
    const views = viewsOf(app);
    const viewsAnHour = Math.ceil(events / EVENTS_A_VIEW / HOURS);
    let view = 0;
    for (let reported = 0; reported < events; now += HOUR_MS) {
      for (let n = 0; n < viewsAnHour && reported < events; n++, view++) {
        const at = now - (n % 60) * 60_000;
        const asset = { id: 1 + (view % ASSETS), tenantId: 1, durationSeconds: 200 };
        const one = { asset_id: asset.id, session_id: `s${view}`, viewer_id: `v${(view * 7919) % VIEWERS}` };
        views.add(
          Array.from({ length: EVENTS_A_VIEW }, (_, step) => ({
            subject: asset,
            event: {
              ...one,
              event: step === 0 ? ("play" as const) : ("heartbeat" as const),
              position_seconds: step * 10,
              watched_seconds: step === 0 ? 0 : 10,
              occurred_at: new Date(at + step * 10_000 - 200_000).toISOString(),
            },
          })),
          { device: "desktop", country: "DE", network: null, referrer: "example.com" },
        );
        reported += EVENTS_A_VIEW;
      }
      await views.flush();
      if (now > begin + HOURS * HOUR_MS) throw new Error("More hours than there are");
    }
  } finally {
    await opened.close();
  }
}

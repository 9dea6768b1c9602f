import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { ADMIN, call, startReference, startVodbox, tenantWithKey, workFolder, wrk } from "./processes.ts";
import { alternately, compare, type Result } from "./result.ts";

const ROUNDS = 5;
const LOAD = { connections: 64, seconds: 4 };

/** Sessions of ten events and 5,000 viewers; every event is unique, also across runs. */
const SCRIPT = `
local n, run = 0, os.time()
function request()
  n = n + 1
  local session, step = math.floor(n / 10), n % 10
  local body = string.format(
    '{"asset_id":1,"session_id":"%d-%d","viewer_id":"v%d","event":"%s","position_seconds":%d,"watched_seconds":10}',
    run, session, session % 5000, step == 0 and "play" or "heartbeat", step * 10)
  return wrk.format("POST", nil, { ["content-type"] = "text/plain" }, body)
end
`;

/**
 * Playback events, one per request, all recorded within a second or two, compared with raw node:http that discards
 * them.
 */
export async function benchBeacons(): Promise<Result[]> {
  const work = workFolder();
  const env = { VODBOX_RATE_LIMIT_BEACON: "1000000/1" };
  const server = await startVodbox(join(work.path, "data"), { env });
  try {
    const { tenantId, key } = await tenantWithKey(server.base);
    // Events for assets that cannot be played are not recorded.
    const video_asset = {
      title: "Film",
      input_status: "uploaded",
      playback_status: "ready",
      playback_policy: "public",
      source_bytes: 1,
      storage_bytes: 1,
      duration_seconds: 100,
      source_key: `tenants/${tenantId}/sources/x.mp4`,
    };
    await call(server.base, "POST", "/api/v1/assets", { tenant_id: tenantId, video_asset }, { "x-api-key": key });
    const script = join(work.path, "beacons.lua");
    writeFileSync(script, SCRIPT);
    const reference = await startReference("take");
    const samples = await alternately(ROUNDS, {
      ours: async () => (await wrk(`${server.base}/api/v1/playback_events`, { ...LOAD, script })).requests,
      theirs: async () => (await wrk(reference.base, { ...LOAD, script })).requests,
    }).finally(reference.stop);
    const counted = await call<{ play_count: number }>(
      server.base,
      "GET",
      `/api/v1/analytics?tenant_id=${tenantId}`,
      undefined,
      { "x-svc-admin-token": ADMIN },
    );
    if (counted.play_count === 0) throw new Error("Nothing was counted");
    return [
      compare("POST /api/v1/playback_events, 64 connections", samples, {
        reference: "raw node:http that reads and forgets",
        unit: "requests/s",
        bar: { atLeast: 0.3 },
      }),
    ];
  } finally {
    await server.stop();
    work.remove();
  }
}

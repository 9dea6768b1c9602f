import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { client } from "#test/support/client.ts";
import { uploaded } from "#test/support/flow.ts";
import { call, tenantWithKey } from "../processes.ts";

const VIDEOS = 12;

/** A film of twelve seconds. */
export function makeFilm(folder: string): Buffer {
  const path = join(folder, "film.mp4");
  const video = ["-f", "lavfi", "-i", "testsrc2=size=1280x720:rate=25:duration=12"];
  const audio = ["-f", "lavfi", "-i", "sine=frequency=440:sample_rate=48000:duration=12"];
  const encoders = ["-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-c:a", "aac"];
  execFileSync("ffmpeg", ["-v", "error", "-y", ...video, ...audio, ...encoders, path]);
  return readFileSync(path);
}

/** A tenant with videos, one of which is watched, and the cookie of a session of the operator. */
export async function fill(base: string, folder: string, admin: string) {
  const { key } = await tenantWithKey(base);
  const bytes = makeFilm(folder);
  const server = { call: client(base) };
  const ids: number[] = [];
  for (let n = 0; n < VIDEOS; n++)
    ids.push((await uploaded(server, key, { bytes, playback_policy: "public", title: `Film ${n + 1}` })).asset.id);
  for (const id of ids) await untilReady(base, id);
  const assetId = ids[0] as number;
  const events = ["play", "playing", "heartbeat", "ended"].map((event, n) => ({
    asset_id: assetId,
    session_id: "s",
    event,
    position_seconds: n * 4,
    watched_seconds: 4,
  }));
  await call(base, "POST", "/api/v1/playback_events", { events });
  const response = await fetch(`${base}/api/v1/session`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ admin_token: admin }),
  });
  const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(response.headers.getSetCookie()[0] ?? "") ?? [];
  return { assetId, key, cookie: { name, value } };
}

/** Throws when the video cannot be encoded. */
export async function untilReady(base: string, id: number): Promise<void> {
  for (;;) {
    const { playback_status, encoding_status } = await call<Record<string, string>>(
      base,
      "GET",
      `/api/v1/assets/${id}`,
    );
    if (playback_status === "errored") throw new Error(`Asset ${id} cannot be encoded`);
    if (playback_status === "ready" && encoding_status === "complete") return;
    await sleep(200);
  }
}

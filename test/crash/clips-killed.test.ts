import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { fast, ffmpeg, picture, sound } from "../media/sources.ts";
import { testApp } from "../support/app.ts";
import { createClip, downloaded, frameHashes } from "../support/clips.ts";
import { descendantsOf, until, untilGone } from "../support/descendants.ts";
import { checkup } from "../support/doctor.ts";
import { uploaded } from "../support/flow.ts";
import { emptyFolder } from "../support/folder.ts";
import { type RunningServer, startServer } from "../support/process.ts";
import { Random } from "./random.ts";

const ROUNDS = 5;
const CLIENTS = 3;
const SECONDS = 18;
const FPS = 25;
const env = {
  ...{ VODBOX_RATE_LIMIT_UPLOADS: "1000000/60", VODBOX_MIN_FREE_BYTES: "0", VODBOX_LEASE_SECONDS: "4" },
};
const args = ["--workers", "1"];

type Clip = { id: number; mode: string; frames: number };

const shown = async (server: RunningServer, key: string, id: number) =>
  (await server.call("GET", `/api/v1/assets/${id}`, { key })).body;
const untilReady = (server: RunningServer, key: string, id: number) =>
  until(
    `asset ${id} is ready`,
    async () => {
      const asset = await shown(server, key, id);
      if (asset.playback_status === "errored") throw new Error(JSON.stringify(asset.error));
      return asset.playback_status === "ready";
    },
    60_000,
  );

async function killed(server: RunningServer): Promise<void> {
  const below = descendantsOf(server.child.pid as number);
  server.child.kill("SIGKILL");
  await server.ended;
  // Its worker and ffmpeg end with it.
  await untilGone(below, 15_000);
}

test(`kill -9 of the server and its worker among clips, ${ROUNDS} times: each 201 becomes a ready clip, and nothing is left`, {
  timeout: 240_000,
}, async () => {
  const seed = Number(process.env.CRASH_SEED ?? Date.now() % 1_000_000);
  console.log(`CRASH_SEED=${seed}`);
  const random = new Random(seed);
  const source = join(emptyFolder(), "film.mp4");
  await ffmpeg(...picture("320x180", String(FPS), SECONDS), ...sound(SECONDS), ...fast, "-c:a", "aac", source);
  const dataDir = emptyFolder();
  let server = await startServer(dataDir, { env, args });
  const { admin } = server;
  const tenant = await server.call("POST", "/api/v1/admin/tenants", { admin, body: { name: "T", slug: "t" } });
  const scopes = ["assets:read", "assets:write", "playback:read"];
  const issued = await server.call("POST", "/api/v1/api_keys", { admin, body: { tenant_id: tenant.body.id, scopes } });
  const key = issued.body.token;
  const bytes = readFileSync(source);
  const { asset: parent } = await uploaded(server, key, { bytes, playback_policy: "public" });
  await untilReady(server, key, parent.id);

  const clips: Clip[] = [];
  for (let round = 1; round <= ROUNDS; round++) {
    const enough = Promise.withResolvers<void>();
    const wanted = clips.length + random.whole(3, 10);
    const loaded = Promise.all(
      Array.from({ length: CLIENTS }, async () => {
        for (;;) {
          const [from, count] = [random.whole(1, 300), random.whole(20, 140)];
          const mode = random.chance(0.5) ? "exact" : "instant";
          const range = { start_seconds: from / FPS, end_seconds: (from + count) / FPS };
          try {
            const made = await createClip(server, key, parent.id, { ...range, mode });
            // The server has too many of them at once.
            if (made.status === 429) continue;
            expect(made.status, made.text).toBe(201);
            clips.push({ id: made.body.id, mode, frames: count });
            if (clips.length >= wanted) enough.resolve();
          } catch (error) {
            // The server has exited; any other error is an unexpected refusal.
            if (error instanceof TypeError) return;
            throw error;
          }
        }
      }),
    );
    await Promise.race([enough.promise, loaded]);
    // In the middle of the cut of one of them.
    await new Promise((resolve) => setTimeout(resolve, random.next() * 600));
    await killed(server);
    await loaded;
    server = await startServer(dataDir, { env, args });
  }
  expect(new Set(clips.map(({ mode }) => mode)).size).toBe(2);
  for (const { id } of clips) await untilReady(server, key, id);
  server.child.kill("SIGTERM");
  expect(await server.ended).toMatchObject({ code: 0 });

  const later = await testApp({ rate_limit_pictures: "10000/60" }, dataDir);
  for (const { id, mode, frames } of clips) {
    const { body } = await later.call("GET", `/api/v1/playback/${id}`, { key });
    if (mode === "exact") expect(await frameHashes(await downloaded(later, body.hls_url))).toHaveLength(frames);
    else expect((await later.opened.server.fetch(new Request(body.hls_url))).status).toBe(200);
  }
  const collect = async () => {
    later.advance(25 * 3_600_000);
    for (const task of ["sweep-attempts", "sweep-objects", "sweep-objects"]) await later.runTask(task).catch(() => {});
  };
  await collect();
  const { of } = await checkup(later);
  for (const check of ["missing", "unreferenced"]) expect(of(check)).toMatchObject({ ok: true, mended: 0 });
  expect(clips.length).toBeGreaterThan(ROUNDS);
  console.log(`${clips.length} clips, ${clips.filter(({ mode }) => mode === "exact").length} of them exact`);
});

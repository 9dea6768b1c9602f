import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { amount } from "#test/support/amount.ts";
import { type TestApp, testApp } from "#test/support/app.ts";
import { createClip, downloaded, frameHashes } from "#test/support/clips.ts";
import { descendantsOf, until, untilGone } from "#test/support/descendants.ts";
import { checkup } from "#test/support/doctor.ts";
import { uploaded } from "#test/support/flow.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { fast, ffmpeg, picture, sound } from "#test/support/media/sources.ts";
import { nightly } from "#test/support/nightly.ts";
import { type RunningServer, startServer, stopCleanly, tenantKey } from "#test/support/process.ts";
import { seeded } from "#test/support/seed.ts";

const ROUNDS = amount(1, 5, "CRASH_ROUNDS");
const CLIENTS = 3;
/** Each is encoded before the test ends, on a machine of any speed; instant clips cost nothing. */
const EXACT_PER_ROUND = 5;
const SECONDS = 18;
const FPS = 25;
const env = {
  VODBOX_RATE_LIMIT_UPLOADS: "1000000/60",
  VODBOX_MIN_FREE_BYTES: "0",
  VODBOX_LEASE_SECONDS: "4",
};
const args = ["--workers", "1"];

type Clip = { id: number; mode: string; frames: number };

const shown = async (server: RunningServer, key: string, id: number) => (await server.as(key).getAsset(id)).body;
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
  await untilGone(below);
}

/** A server with a worker, and a film that is ready. */
async function startWithFilm() {
  const source = join(emptyFolder(), "film.mp4");
  await ffmpeg(...picture("320x180", String(FPS), SECONDS), ...sound(SECONDS), ...fast, "-c:a", "aac", source);
  const dataDir = emptyFolder();
  const server = await startServer(dataDir, { env, args });
  const key = await tenantKey(server);
  const bytes = readFileSync(source);
  const { asset: parent } = await uploaded(server, key, { bytes, playback_policy: "public" });
  await untilReady(server, key, parent.id);
  return { server, dataDir, key, parent };
}

/** All garbage is collected, and the doctor finds nothing that is missing or left. */
async function expectClean(later: TestApp): Promise<void> {
  later.advance(25 * 3_600_000);
  for (const task of ["sweep-attempts", "sweep-objects", "sweep-objects"]) await later.runTask(task).catch(() => {});
  const { of } = await checkup(later);
  for (const check of ["missing", "unreferenced"]) expect(of(check)).toMatchObject({ ok: true, fixed: 0 });
}

test(`kill -9 of the server and its worker among clips, ${ROUNDS} times: each 201 becomes a ready clip, and nothing is left`, async () => {
  const random = seeded();
  const started = await startWithFilm();
  const { dataDir, key, parent } = started;
  let { server } = started;
  const clips: Clip[] = [];
  for (let round = 1; round <= ROUNDS; round++) {
    const enough = Promise.withResolvers<void>();
    const wanted = clips.length + random.whole(3, 10);
    let exact = 0;
    const loaded = Promise.all(
      Array.from({ length: CLIENTS }, async () => {
        for (;;) {
          const from = random.whole(1, 300);
          const count = random.whole(20, 140);
          const mode = random.chance(0.5) && exact < EXACT_PER_ROUND ? "exact" : "instant";
          if (mode === "exact") exact++;
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
  await stopCleanly(server);

  const later = await testApp({ rate_limit_pictures: "10000/60" }, dataDir);
  for (const { id, mode, frames } of clips) {
    const { body } = await later.as(key).getPlayback(id);
    if (mode === "exact") expect(await frameHashes(await downloaded(later, body.hls_url))).toHaveLength(frames);
    else expect((await later.opened.server.fetch(new Request(body.hls_url))).status).toBe(200);
  }
  await expectClean(later);
  expect(clips.length).toBeGreaterThan(ROUNDS);
  console.log(`${clips.length} clips, ${clips.filter(({ mode }) => mode === "exact").length} of them exact`);
});

nightly(
  `kill -9 of the server and its worker among trims, ${ROUNDS} times: each 202 is trimmed once, and plays until then`,
  async () => {
    const random = seeded();
    const started = await startWithFilm();
    const { dataDir, key, parent } = started;
    let { server } = started;
    const trims: { id: number; frames: number }[] = [];
    for (let round = 1; round <= ROUNDS; round++) {
      const ids: number[] = [];
      for (let index = 0; index < CLIENTS; index++) {
        const whole = { start_seconds: 0, end_seconds: SECONDS, mode: "instant" };
        ids.push((await createClip(server, key, parent.id, whole)).body.id);
      }
      for (const id of ids) {
        const from = random.whole(1, 300);
        const count = random.whole(20, 140);
        const body = { start_seconds: from / FPS, end_seconds: (from + count) / FPS, mode: "exact" };
        const { status, text } = await server.as(key).trimAsset(id, body);
        // A range of whole segments needs no job.
        expect([200, 202], text).toContain(status);
        trims.push({ id, frames: count });
      }
      await new Promise((resolve) => setTimeout(resolve, random.next() * 1500));
      await killed(server);
      server = await startServer(dataDir, { env, args });
      for (const id of ids) expect(await shown(server, key, id)).toMatchObject({ playback_status: "ready" });
    }
    for (const { id, frames } of trims)
      await until(
        `asset ${id} is trimmed`,
        async () => Math.abs((await shown(server, key, id)).duration_seconds - frames / FPS) < 0.01,
        60_000,
      );
    await stopCleanly(server);

    const later = await testApp({ rate_limit_pictures: "10000/60" }, dataDir);
    for (const { id, frames } of trims) {
      const { body } = await later.as(key).getPlayback(id);
      expect(await frameHashes(await downloaded(later, body.hls_url))).toHaveLength(frames);
    }
    await expectClean(later);
  },
);

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { amount } from "#test/support/amount.ts";
import { testApp } from "#test/support/app.ts";
import { downloaded, frameHashes } from "#test/support/clips.ts";
import { descendantsOf, until, untilGone } from "#test/support/descendants.ts";
import { checkup } from "#test/support/doctor.ts";
import { uploaded } from "#test/support/flow.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { fast, ffmpeg, picture, sound } from "#test/support/media/sources.ts";
import { type RunningServer, startServer, stopCleanly, tenantKey } from "#test/support/process.ts";
import { seeded } from "#test/support/seed.ts";

const ROUNDS = amount(1, 4, "CRASH_ROUNDS");
const FPS = 25;
/** The length of each part, in seconds. */
const LENGTHS = [9, 5.2];
const env = { VODBOX_RATE_LIMIT_UPLOADS: "1000000/60", VODBOX_MIN_FREE_BYTES: "0", VODBOX_LEASE_SECONDS: "4" };
const args = ["--workers", "1"];

const untilReady = (server: RunningServer, key: string, id: number) =>
  until(
    `asset ${id} is ready`,
    async () => {
      const { body } = await server.as(key).getAsset(id);
      if (body.playback_status === "errored") throw new Error(JSON.stringify(body.error));
      return body.playback_status === "ready";
    },
    60_000,
  );

test(`kill -9 of the server and its worker among joins, ${ROUNDS} times: each 201 becomes a joined asset, and nothing is left`, async () => {
  const random = seeded();
  const dataDir = emptyFolder();
  let server = await startServer(dataDir, { env, args });
  const key = await tenantKey(server);
  const parts: number[] = [];
  for (const seconds of LENGTHS) {
    const source = join(emptyFolder(), "film.mp4");
    await ffmpeg(...picture("320x180", String(FPS), seconds), ...sound(seconds), ...fast, "-c:a", "aac", source);
    const { asset } = await uploaded(server, key, { bytes: readFileSync(source), playback_policy: "public" });
    await untilReady(server, key, asset.id);
    parts.push(asset.id);
  }
  const joins: { id: number; frames: number }[] = [];
  for (let round = 1; round <= ROUNDS; round++) {
    for (let count = 0; count < 2; count++) {
      const chosen = Array.from({ length: random.whole(2, 20) }, () => random.whole(0, 1));
      const body = { asset_ids: chosen.map((index) => parts[index]) };
      const made = await server.as(key).unchecked.joinAssets(body);
      expect(made.status, made.text).toBe(201);
      const frames = chosen.reduce((sum, index) => sum + Math.round((LENGTHS[index] as number) * FPS), 0);
      joins.push({ id: made.body.id, frames });
    }
    // In the middle of one of them.
    await new Promise((resolve) => setTimeout(resolve, random.next() * 1500));
    const below = descendantsOf(server.child.pid as number);
    server.child.kill("SIGKILL");
    await server.ended;
    await untilGone(below);
    server = await startServer(dataDir, { env, args });
  }
  for (const { id } of joins) await untilReady(server, key, id);
  await stopCleanly(server);

  const later = await testApp({}, dataDir);
  for (const { id, frames } of joins) {
    const { body } = await later.as(key).getPlayback(id);
    expect(await frameHashes(await downloaded(later, body.hls_url))).toHaveLength(frames);
  }
  later.advance(25 * 3_600_000);
  for (const task of ["sweep-attempts", "sweep-objects", "sweep-objects"]) await later.runTask(task).catch(() => {});
  const { of } = await checkup(later);
  for (const check of ["missing", "unreferenced"]) expect(of(check)).toMatchObject({ ok: true, fixed: 0 });
});

import { readdirSync } from "node:fs";
import { join, relative } from "node:path";
import Sqlite from "libsql";
import { expect, test } from "vitest";
import { amount } from "#test/support/amount.ts";
import { testApp } from "#test/support/app.ts";
import { type Files, leased, tiny, tinyAsset } from "#test/support/batches.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { startServer, stopCleanly, tenantKey } from "#test/support/process.ts";
import { seeded } from "#test/support/seed.ts";

const ROUNDS = amount(2, 6, "CRASH_ROUNDS");
const ASSETS = 8;
const env = { VODBOX_RATE_LIMIT_UPLOADS: "1000000/60", VODBOX_MIN_FREE_BYTES: "0" };

test(`kill -9 in the middle of a commit, ${ROUNDS} times: all assets or none, and a repeat makes them`, async () => {
  const random = seeded();
  const dataDir = emptyFolder();
  let server = await startServer(dataDir, { env });
  const key = await tenantKey(server, ["assets:write", "assets:read"]);
  const files: Files = { "en.vtt": "WEBVTT\n\n00:00.000 --> 00:01.000\nHello\n", "source.mp4": "the source" };
  const manifest = { assets: [] as object[] };
  for (let number = 0; number < ASSETS; number++) {
    Object.assign(files, tiny(`${number}/`));
    manifest.assets.push(
      tinyAsset(`${number}/`, {
        source_key: "source.mp4",
        subtitles: [{ language: "en", label: "English", path: "en.vtt" }],
        tracks: [{ kind: "chapter", cues: [] }],
      }),
    );
  }
  const count = async () => (await server.as(key).listAssets({ limit: 500 })).body.length;
  let made = 0;
  // The duration of a commit here, so that the kills are spread over it.
  let commitMs = 0;
  let cut = 0;
  for (let round = 0; round <= ROUNDS; round++) {
    const batch = await leased(server, key);
    await batch.putAll(files);
    const from = performance.now();
    const committing = batch.commit(manifest).catch((error) => {
      if (error instanceof TypeError) return null;
      throw error;
    });
    if (round > 0) {
      await new Promise((resolve) => setTimeout(resolve, random.next() * commitMs));
      server.child.kill("SIGKILL");
      expect((await server.ended).signal).toBe("SIGKILL");
    }
    const answer = await committing;
    if (round === 0) commitMs = performance.now() - from;
    else server = await startServer(dataDir, { env });
    const after = await count();
    if (answer) expect([answer.status, after], answer.text).toEqual([200, made + ASSETS]);
    else expect([made, made + ASSETS]).toContain(after);
    if (after === made) cut++;
    // At the new server's URL, with the same token.
    const again = await server.call("POST", `${batch.path}/manifest/commit`, {
      headers: batch.headers,
      body: manifest,
    });
    expect(again.status, again.text).toBe(200);
    if (answer) expect(again.text).toBe(answer.text);
    made += ASSETS;
    expect(await count()).toBe(made);
    for (const asset of again.body.assets)
      expect((await server.as(key).getAsset(asset.id)).body.playback_status).toBe("ready");
  }
  console.log(`${cut} of ${ROUNDS} commits were cut before they counted; one takes ${Math.round(commitMs)} ms`);
  await stopCleanly(server);

  const later = await testApp({}, dataDir);
  later.advance(26 * 3_600_000);
  for (const task of ["expire-batches", "sweep-batches", "sweep-batches"]) await later.runTask(task);
  const root = join(dataDir, "objects");
  const stored = () =>
    readdirSync(root, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => relative(root, join(entry.parentPath, entry.name)))
      .sort();
  for (let left = -1; left !== stored().length; ) {
    left = stored().length;
    await later.runTask("sweep-objects");
  }
  const database = new Sqlite(join(dataDir, "vodbox.db"), { readonly: true } as Sqlite.Options);
  const all = (sql: string) => database.prepare(sql).all([]) as any[];
  const rows = all("SELECT media_prefix, source_key FROM assets");
  const texts = all("SELECT object_key FROM subtitles").map((row) => row.object_key);
  const [sums] = all("SELECT sum(storage_bytes) AS held, (SELECT storage_bytes FROM tenants) AS used FROM assets");
  const told = all("SELECT type, count(*) AS n FROM events GROUP BY type ORDER BY type");
  database.close();
  // Each asset has its source, its five files and its text; nothing else remains.
  expect(stored().length).toBe(rows.length * 6 + texts.length);
  for (const { media_prefix } of rows) expect(stored().filter((name) => name.startsWith(media_prefix))).toHaveLength(6);
  expect(sums.held).toBe(sums.used);
  expect(told.map(({ type, n }) => [type, n])).toEqual([
    ["video.asset.ready", made],
    ["video.subtitle.ready", made],
    ["video.track.ready", made],
  ]);
});

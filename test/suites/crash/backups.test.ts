import { createHash } from "node:crypto";
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import Sqlite from "libsql";
import { expect, test } from "vitest";
import { amount } from "#test/support/amount.ts";
import { callback, next, putArtifacts, readyAsset, uploaded } from "#test/support/flow.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { run, startServer, tenantKey } from "#test/support/process.ts";
import { seeded } from "#test/support/seed.ts";
import { subtitled } from "#test/support/subtitles.ts";

const SECONDS = amount(4, 30, "BACKUP_SECONDS");
const EVERY_MS = amount(2000, 5000);
const SLOW_BYTES = 64 * 2 ** 20;

test(`backups under load for ${SECONDS} s: each is intact, complete, and newer than the one before`, {
  timeout: SECONDS * 20_000 + 600_000,
}, async () => {
  const dataDir = emptyFolder();
  const env = {
    VODBOX_RATE_LIMIT_UPLOADS: "1000000/60",
    VODBOX_RATE_LIMIT_BEACON: "1000000/60",
    // Short enough for sweeps in a long run; on a slow machine workers must not lose a lease in a short one.
    VODBOX_LEASE_SECONDS: SECONDS > 60 ? "10" : "600",
  };
  const server = await startServer(dataDir, { env });
  const { admin } = server;
  const key = await tenantKey(server);
  const random = seeded();
  // It comes first in each backup and takes a while, so that other objects are deleted before they are copied.
  const first = await uploaded(server, key);
  const { body: contract } = await next(server);
  const slow = { [`${contract.outputs.prefix}low/0.m4s`]: new Uint8Array(SLOW_BYTES) };
  const paths = await putArtifacts(server, contract, slow);
  const media = { duration_seconds: 4, renditions: [] };
  expect((await callback(server, contract, "complete", { ...paths, media })).status).toBe(200);
  expect(first.asset.id).toBe(1);
  let over = false;
  const made = { assets: 0, deleted: 0, subtitles: 0, beacons: 0 };
  const ask = async (method: string, path: string, options: object, status: number) => {
    const answer = await server.call(method, path, options);
    if (answer.status !== status) throw new Error(`${method} ${path}: ${answer.status} ${answer.text}`);
    return answer.body;
  };
  const ready: number[] = [];
  const load = async (work: () => Promise<void>) => {
    while (!over) await work();
  };
  const loads = [
    load(async () => {
      const { asset } = await readyAsset(server, key, {
        bytes: random.bytes(random.whole(1, 200_000)),
        playback_policy: "public",
      });
      made.assets++;
      ready.push(asset.id);
      const subtitle = await subtitled(server, key, asset.id);
      made.subtitles++;
      const content = `WEBVTT\n\n00:00:00.000 --> 00:00:02.000\n${random.whole(1, 1e9)}\n`;
      await ask("PATCH", `/api/v1/assets/${asset.id}/subtitles/${subtitle.id}`, { key, body: { content } }, 200);
      if (random.chance(0.3)) await ask("DELETE", `/api/v1/assets/${asset.id}/subtitles/${subtitle.id}`, { key }, 204);
      // Old ones and the newest.
      if (!random.chance(0.6)) return;
      const [gone] = ready.splice(random.whole(0, ready.length - 1), 1);
      await ask("DELETE", `/api/v1/assets/${gone}`, { key }, 204);
      made.deleted++;
    }),
    load(async () => {
      const id = ready.at(-1);
      if (id === undefined) return void (await new Promise((resolve) => setImmediate(resolve)));
      const body = { asset_id: id, session_id: `s-${random.whole(1, 50)}`, event: "play", position_seconds: 0 };
      await server.as().recordPlaybackEvents(body);
      made.beacons++;
    }),
  ];
  const folder = emptyFolder();
  const cli = async (...args: string[]) => {
    const ended = await run(["admin", ...args], {
      env: { VODBOX_ADMIN_TOKEN: admin, VODBOX_LOG_LEVEL: "error" },
    });
    expect(ended.code, `${args.join(" ")}: ${ended.stderr} ${ended.stdout}`).toBe(0);
    return ended.stdout;
  };
  let before: Record<string, number> = {};
  let backups = 0;
  const end = performance.now() + SECONDS * 1000;
  do {
    const due = performance.now() + EVERY_MS;
    const file = join(folder, `${backups}.tar${backups % 2 ? ".zst" : ""}`);
    const { objects } = JSON.parse(await cli("backup", file, "--objects", "--json", "--data", dataDir));
    expect(objects.missing).toBe(0);
    const checked = JSON.parse(await cli("restore", file, "--check", "--json", "--data", emptyFolder()));
    expect(checked).toMatchObject({ ok: true, faults: [], missing: 0 });
    const restored = join(folder, "restored");
    await cli("restore", file, "--data", restored);
    before = checkRestored(restored, before);
    rmSync(restored, { recursive: true });
    rmSync(file);
    backups++;
    // Real time: the interval of the backups.
    if (performance.now() < due && due < end)
      await new Promise((resolve) => setTimeout(resolve, due - performance.now()));
  } while (performance.now() < end || backups < 2);
  over = true;
  await Promise.all(loads);
  console.log(`${backups} backups under load: ${JSON.stringify(made)}, the last with ${JSON.stringify(before)}`);
  expect(made.assets).toBeGreaterThan(0);
  // Nothing that waited for a backup waits forever.
  const late = await uploaded(server, key);
  await ask("DELETE", `/api/v1/assets/${late.asset.id}`, { key }, 204);
  expect((await server.as().getReadiness()).status).toBe(200);

  /** Compares rows and bytes; of the counters, only those that never decrease. */
  function checkRestored(data: string, earlier: Record<string, number>) {
    const database = new Sqlite(join(data, "vodbox.db"), { readonly: true } as Sqlite.Options);
    try {
      const all = <R>(sql: string) => database.prepare(sql).all([]) as R[];
      expect(all("PRAGMA integrity_check")).toEqual([{ integrity_check: "ok" }]);
      expect(all("PRAGMA foreign_key_check")).toEqual([]);
      const counts = Object.fromEntries(
        ["events", "sqlite_sequence WHERE name = 'assets'", "transcoding_jobs"].map((from) => {
          const column = from.startsWith("sqlite_sequence") ? "seq" : "max(id)";
          return [from.split(" ")[0] as string, all<{ n: number }>(`SELECT ${column} AS n FROM ${from}`)[0]?.n ?? 0];
        }),
      );
      for (const name of ["events", "sqlite_sequence"]) expect(counts[name]).toBeGreaterThanOrEqual(earlier[name] ?? 0);
      const named = all<{ key: string; bytes: number }>(
        `SELECT source_key AS key, source_bytes AS bytes FROM assets WHERE input_status = 'uploaded'
         UNION ALL SELECT object_key, bytes FROM subtitles`,
      );
      const stored = all<{ key: string }>("SELECT manifest_path AS key FROM assets WHERE manifest_path IS NOT NULL");
      for (const { key: name, bytes } of named)
        expect(readFileSync(join(data, "objects", name)).length, name).toBe(bytes);
      for (const { key: name } of stored) {
        expect(readFileSync(join(data, "objects", name), "utf8"), name).toContain("#EXTM3U");
        const segment = join(name, "..", "low/1.m4s");
        expect(sha256(readFileSync(join(data, "objects", segment))), segment).toBe(sha256(Buffer.from("segment")));
      }
      return counts;
    } finally {
      database.close();
    }
  }
});

const sha256 = (bytes: Buffer) => createHash("sha256").update(bytes).digest("hex");

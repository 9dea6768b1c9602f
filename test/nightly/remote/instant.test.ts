import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { createClient } from "@libsql/client";
import Sqlite from "libsql";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { startWorker } from "#test/support/crash/encoding.ts";
import { until } from "#test/support/descendants.ts";
import { uploaded } from "#test/support/flow.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { freshly } from "#test/support/fresh.ts";
import { fast, ffprobe, picture, repeated, sound, temporaryFolder } from "#test/support/media/sources.ts";
import { nightly } from "#test/support/nightly.ts";
import { type RunningServer, startServer, stopCleanly, tenantKey } from "#test/support/process.ts";
import { newBucket, type S3Server, s3Server, s3Settings } from "#test/support/s3-server.ts";
import { startSqld } from "#test/support/sqld.ts";

vi.setConfig({ testTimeout: 500_000 });

/** Long enough that its end is not encoded when it is requested. */
const SECONDS = 150;
const FPS = 15;
const SEGMENTS = Math.ceil(SECONDS / 4);
const folder = temporaryFolder("instant-servers");
const clip = join(folder, "clip.mp4");
let s3: S3Server;
beforeAll(async () => {
  // Not copied: its keyframes are too far apart.
  const video = [...picture("640x360", String(FPS), 10), ...fast, "-g", String(10 * FPS)];
  [s3] = await Promise.all([s3Server(), repeated(clip, SECONDS / 10, video, [...sound(SECONDS), "-c:a", "aac"])]);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

type Rows = (sql: string) => Promise<Record<string, any>[]>;

/** An asset that is ready before it is encoded. `at`: the URL of a file of its media, at any server. */
async function published(upload: RunningServer, other: RunningServer) {
  const key = await tenantKey(upload);
  const fields = { early_playback: true, playback_policy: "public" };
  const { asset } = await uploaded(upload, key, { bytes: readFileSync(clip), ...fields });
  const seen = async () => (await other.as(key).getAsset(asset.id)).body;
  await until("the asset is ready", async () => (await seen()).playback_status === "ready", 120_000);
  expect((await seen()).encoding_status).toBe("partial");
  const { body } = await other.as(key).getPlayback(asset.id);
  const master = await (await fetch(body.hls_url)).text();
  const [, media = ""] = /^(?!#)(\S+\/)360p\//m.exec(master) ?? [];
  const at = (server: RunningServer, path: string) => server.base + new URL(media + path, body.hls_url).pathname;
  return { asset, seen, at, hls: new URL(body.hls_url).pathname };
}

const nameOf = (number: number) => `${String(number + 1).padStart(5, "0")}.m4s`;

/** As a player does, but it follows a redirect only once the server has answered: again after a 503. */
async function requested(url: string): Promise<number> {
  for (let tries = 1; tries <= 60; tries++) {
    const response = await fetch(url, { redirect: "manual" });
    if (response.status === 302) {
      const object = await fetch(response.headers.get("location") as string);
      expect(object.status, "a redirect to an object that does not exist").toBe(200);
      return (await object.arrayBuffer()).byteLength;
    }
    const { byteLength } = await response.arrayBuffer();
    if (response.status === 200) return byteLength;
    expect(response.status).toBe(503);
    expect(response.headers.get("cache-control")).toBe("no-store");
    await sleep(Number(response.headers.get("retry-after")) * 1000);
  }
  throw new Error(`${url} was never encoded`);
}

/** The tasks that have a segment, with the leases of each, but not those in which a worker that was to yield had no segment yet. */
const tasksOf = (rows: Rows, rendition: string, number: number) =>
  rows(`SELECT task.id, task.service_class, count(lease.id) AS leases FROM transcoding_tasks task
    LEFT JOIN task_leases lease ON lease.task_id = task.id AND lease.outcome IS NOT 'released'
    WHERE task.kind = 'chunk' AND task.first_segment <= ${number}
      AND (task.segments IS NULL OR task.first_segment + task.segments > ${number})
      AND (task.renditions IS NULL OR EXISTS (SELECT 1 FROM json_each(task.renditions) WHERE value = '${rendition}'))
    GROUP BY task.id`);

/** Every task was completed once, by its only lease but for those before it had a segment: no segment was encoded twice. */
async function expectOnce(rows: Rows) {
  const leases = await rows("SELECT task_id, outcome FROM task_leases WHERE outcome IS NOT 'released'");
  expect(new Set(leases.map(({ outcome }) => outcome))).toEqual(new Set(["completed"]));
  expect(new Set(leases.map(({ task_id }) => task_id)).size).toBe(leases.length);
  for (const name of ["360p", "240p"])
    for (let number = 0; number < SEGMENTS; number++)
      expect(await tasksOf(rows, name, number), `${name} ${number}`).toEqual([expect.objectContaining({ leases: 1 })]);
}

async function framesAt(url: string): Promise<Set<number>> {
  const counted = ["-count_packets", "-select_streams", "v", "-show_entries", "stream=nb_read_packets"];
  const lines = (await ffprobe(...counted, "-of", "csv=p=0", url)).split("\n").filter(Boolean);
  return new Set(lines.map(Number.parseFloat).filter(Number.isFinite));
}

nightly("two servers over S3, and a worker of one: a segment that both request at once is encoded once", async () => {
  const bucket = newBucket("instant");
  await s3.bucket(bucket);
  const database = await startSqld(emptyFolder());
  const env = {
    VODBOX_DATABASE_URL: database.url,
    VODBOX_SIGNING_SECRET: "signing-secret-of-both",
    ...s3Settings(s3, bucket),
  };
  const presigning = { ...env, VODBOX_S3_DELIVERY: "rewrite" };
  const [a, b] = await Promise.all([
    startServer(emptyFolder(), { env }),
    startServer(emptyFolder(), { env: presigning }),
  ]);
  const client = createClient({ url: database.url });
  const rows: Rows = async (sql) => (await client.execute(sql)).rows as unknown as Record<string, any>[];
  const worker = startWorker(a, emptyFolder());
  const { seen, at, hls } = await published(b, a);

  // Presigned URLs of segments that do not exist yet would be 404.
  const listed = await (await fetch(at(b, "360p/early-playlist.m3u8"))).text();
  expect(listed.match(/^[^#\n]+$/gm)).toEqual(Array.from({ length: SEGMENTS }, (_, number) => nameOf(number)));
  const target = SEGMENTS - 4;
  const path = `360p/${nameOf(target)}`;
  for (const server of [a, b]) expect((await fetch(at(server, path), { method: "HEAD" })).status).toBe(404);
  const [first, second] = await Promise.all([requested(at(a, path)), requested(at(b, path))]);
  expect(first).toBeGreaterThan(1000);
  expect(second).toBe(first);
  expect(await tasksOf(rows, "360p", target)).toEqual([
    expect.objectContaining({ service_class: "requested", leases: 1 }),
  ]);
  expect((await seen()).encoding_status).toBe("partial");

  // A viewer of each server, who watches the other rendition while it is encoded.
  await Promise.all(
    [a, b].map(async (server, index) => {
      for (let number = index; number < SEGMENTS; number += 2)
        expect(await requested(at(server, `240p/${nameOf(number)}`))).toBeGreaterThan(500);
    }),
  );
  await until("it is encoded", async () => (await seen()).encoding_status === "complete", 300_000);
  await expectOnce(rows);
  for (const server of [a, b]) expect(await framesAt(server.base + hls)).toEqual(new Set([SECONDS * FPS]));
  await stopCleanly(worker);
  for (const server of [a, b]) {
    await stopCleanly(server);
    expect(server.stderr()).not.toMatch(/"level":(50|60)/);
  }
});

test("two processes of a server: a segment that viewers of both request is encoded once", async () => {
  const dataDir = emptyFolder();
  const server = await startServer(dataDir, { args: ["--processes", "2", "--workers", "1"] });
  const { seen, at, hls } = await published(server, server);
  const target = SEGMENTS - 4;
  const url = at(server, `360p/${nameOf(target)}`);
  expect((await fetch(url, { method: "HEAD" })).status).toBe(404);
  // The kernel assigns connections to processes.
  const viewer = freshly(server.base);
  const answers = await Promise.all(Array.from({ length: 12 }, () => viewer("GET", new URL(url).pathname)));
  expect([200, 503]).toEqual(expect.arrayContaining([...new Set(answers.map(({ status }) => status))]));
  expect(await requested(url)).toBeGreaterThan(1000);
  await until("it is encoded", async () => (await seen()).encoding_status === "complete", 300_000);
  expect(await framesAt(server.base + hls)).toEqual(new Set([SECONDS * FPS]));
  await stopCleanly(server);
  const stored = new Sqlite(join(dataDir, "vodbox.db"), { readonly: true } as Sqlite.Options);
  await expectOnce(async (sql) => stored.prepare(sql).all([]) as Record<string, any>[]);
  stored.close();
});

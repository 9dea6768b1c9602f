import { rmSync } from "node:fs";
import { get } from "node:http";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { playingEarly, rowsOf, type TaskRow, tasksOf } from "#test/support/crash/encoding.ts";
import { until } from "#test/support/descendants.ts";
import { fast, ffmpeg, picture, sound, temporaryFolder } from "#test/support/media/sources.ts";
import { stopCleanly } from "#test/support/process.ts";

vi.setConfig({ testTimeout: 400_000 });

const folder = temporaryFolder("vodbox-test-early-ranges");
const clip = join(folder, "clip.mp4");
const SECONDS = 64;
const SEGMENTS = SECONDS / 4;
const RENDITIONS = ["720p", "480p", "360p"];
beforeAll(() => ffmpeg(...picture("1280x720", "25", SECONDS), ...sound(SECONDS), ...fast, "-c:a", "aac", clip));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

type Received = { status: number; headers: Record<string, unknown>; body: Buffer };
/** As sent on the wire: `fetch` may change ranges. Repeated after 503, as players do. */
async function received(url: string, range?: string): Promise<Received> {
  for (let tries = 0; tries < 30; tries++) {
    const answer = await new Promise<Received>((resolve, reject) => {
      get(url, { headers: range === undefined ? {} : { range } }, (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk) => chunks.push(chunk));
        response.on("end", () =>
          resolve({ status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(chunks) }),
        );
      }).on("error", reject);
    });
    if (answer.status !== 503) return answer;
    expect(answer.headers["retry-after"]).toBe("2");
  }
  throw new Error(`${url} was never encoded`);
}

/** How often each segment of each rendition belongs to a task, and so was encoded: no task runs twice. */
function encodedOf(tasks: readonly TaskRow[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { kind, first_segment, segments, renditions } of tasks) {
    if (kind !== "chunk") continue;
    const from = first_segment ?? 0;
    for (const name of renditions === null ? RENDITIONS : (JSON.parse(renditions) as string[]))
      for (let number = from; number < (segments === null ? SEGMENTS : from + segments); number++)
        counts.set(`${name} ${number}`, (counts.get(`${name} ${number}`) ?? 0) + 1);
  }
  return counts;
}

test("segments that are encoded on request have ranges, and none is encoded twice, also in a chunk that a worker has begun", async () => {
  const { dataDir, server, state, playback } = await playingEarly(clip);
  const master = await (await fetch(playback.hls_url)).text();
  const [top] = /^.*720p\/.*\.m3u8$/m.exec(master) as RegExpExecArray;
  const urlOf = (name: string, number: number) =>
    new URL(`../${name}/${String(number + 1).padStart(5, "0")}.m4s`, new URL(top, playback.hls_url)).href;

  // Not begun: its end, with several ranges, several times at once.
  const ranges = "bytes=0-10,20-30";
  const wanted = urlOf("720p", SEGMENTS - 3);
  expect(encodedOf(tasksOf(dataDir).filter(({ status }) => status !== "queued")).has(`720p ${SEGMENTS - 3}`)).toBe(
    false,
  );
  const [several, single, suffix] = await Promise.all([
    received(wanted, ranges),
    received(wanted, "bytes=4-7"),
    received(wanted, "bytes=-5"),
  ]);
  // Several ranges may be answered with the whole (RFC 9110, 14.2).
  expect(several.status).toBe(200);
  expect(several.headers["content-length"]).toBe(String(several.body.length));
  expect([single.status, single.body.toString()]).toEqual([206, several.body.subarray(4, 8).toString()]);
  expect(single.headers["content-range"]).toBe(`bytes 4-7/${several.body.length}`);
  expect([suffix.status, suffix.body]).toEqual([206, several.body.subarray(-5)]);
  expect((await received(wanted, `bytes=${several.body.length}-`)).status).toBe(416);

  // Begun by the worker in the background: a segment of it that is not stored yet.
  const lengthOf = ({ first_segment, segments }: TaskRow) => segments ?? SEGMENTS - (first_segment ?? 0);
  const running = await until(
    "a chunk of several segments is being encoded",
    () => tasksOf(dataDir).find((task) => task.kind === "chunk" && task.status === "running" && lengthOf(task) > 2),
    120_000,
  );
  const number = (running.first_segment ?? 0) + lengthOf(running) - 1;
  const [name] = running.renditions === null ? RENDITIONS : (JSON.parse(running.renditions) as string[]);
  const both = [received(urlOf(name as string, number), ranges), received(urlOf(name as string, number))];
  const [first, second] = (await Promise.all(both)) as [Received, Received];
  expect([first.status, second.status]).toEqual([200, 200]);
  expect(first.body).toEqual(second.body);

  await until("it is complete", async () => (await state()).encoding_status === "complete", 300_000);
  expect((await received(urlOf(name as string, number))).body).toEqual(first.body);
  await stopCleanly(server);
  const counts = encodedOf(tasksOf(dataDir));
  expect(counts.size).toBe(SEGMENTS * RENDITIONS.length);
  expect([...counts].filter(([, count]) => count !== 1)).toEqual([]);
  const { taskLeases: leases, attempts } = rowsOf(dataDir);
  expect(attempts).toHaveLength(1);
  // A worker that was to yield before it had a segment returns its task.
  const taskLeases = leases.filter(({ outcome }) => outcome !== "released");
  expect(taskLeases.map(({ outcome }) => outcome)).toEqual(taskLeases.map(() => "completed"));
  expect(new Set(taskLeases.map(({ task_id }) => task_id)).size).toBe(tasksOf(dataDir).length);
  expect(taskLeases).toHaveLength(tasksOf(dataDir).length);
});

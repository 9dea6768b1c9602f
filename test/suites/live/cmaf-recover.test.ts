import { type ChildProcess, execFile, spawn } from "node:child_process";
import { mkdirSync, readdirSync, rmSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { createPackager } from "#live/cmaf/packager.ts";
import { recover } from "#live/cmaf/recover.ts";
import type { Health, Part, Recording } from "#live/cmaf/types.ts";
import { rows } from "#test/support/amount.ts";
import type { Random } from "#test/support/crash/random.ts";
import { atEnd, emptyFolder } from "#test/support/folder.ts";
import { aac, collect, feed, messagesOf, packetsIn, picture, sound, x264 } from "#test/support/live/cmaf-publisher.ts";
import { complaints, ffmpeg } from "#test/support/media/sources.ts";
import { seeded } from "#test/support/seed.ts";

const PROCESS = fileURLToPath(new URL("./cmaf-process.ts", import.meta.url));
const exec = promisify(execFile);

type Line = { part?: Part & { kept: boolean }; health?: Health; recording?: Recording };
const linesIn = (text: string): Line[] =>
  text
    .split("\n")
    .slice(0, -1)
    .map((line) => JSON.parse(line));

async function flv(...args: string[]): Promise<string> {
  const path = join(emptyFolder(), "source.flv");
  await ffmpeg(...args, "-f", "flv", path);
  return path;
}

/** Kills a process that packages in real time, some time after it reported that many parts. */
async function killedAfter(source: string, folder: string, parts: number, random: Random): Promise<Line[]> {
  const child: ChildProcess = spawn(process.execPath, [PROCESS, source, folder, "1"], { stdio: ["ignore", "pipe", 2] });
  atEnd(() => child.kill("SIGKILL"));
  let output = "";
  const reached = Promise.withResolvers<void>();
  const exited = new Promise<NodeJS.Signals | null>((resolve) => child.on("close", (_, signal) => resolve(signal)));
  child.stdout?.on("data", (data: Buffer) => {
    output += data.toString();
    if (linesIn(output).filter(({ part }) => part).length >= parts) reached.resolve();
  });
  await Promise.race([reached.promise, exited]);
  await sleep(random.whole(0, 500));
  child.kill("SIGKILL");
  expect(await exited).toBe("SIGKILL");
  return linesIn(output);
}

/** A rendition decodes without a warning, and nothing of it is left open. */
async function decoded(folder: string, name: string): Promise<string> {
  const path = join(emptyFolder(), "joined.mp4");
  const names = readdirSync(join(folder, name)).sort();
  expect(names.filter((file) => file.endsWith(".open"))).toEqual([]);
  const segments = names.filter((file) => file.endsWith(".m4s"));
  const files = ["init.mp4", ...segments].map((file) => readFile(join(folder, name, file)));
  await writeFile(path, Buffer.concat(await Promise.all(files)));
  expect(await complaints("-i", path, "-f", "null", "-")).toBe("");
  return path;
}

test("a process that is killed keeps every part that it reported", async () => {
  const source = await flv(...picture(12), ...sound(12), ...x264(60), ...aac);
  const random = seeded();
  await Promise.all(
    [3, 8, 17, 26].map(async (parts) => {
      const folder = emptyFolder();
      const lines = await killedAfter(source, folder, parts, random);
      const reported = lines.flatMap(({ part }) => (part?.track === "video" ? [part] : []));
      const end = Math.max(...reported.map((part) => part.startSeconds + part.durationSeconds));
      const recording = await recover(folder);
      const seconds = recording.video?.durationSeconds ?? 0;
      expect(seconds).toBeGreaterThanOrEqual(end - 1e-6);
      expect(seconds).toBeLessThan(end + 1.6);
      expect(recording.video?.rate).toEqual({ num: 30, den: 1 });
      const frames = await packetsIn(await decoded(folder, recording.video?.name ?? ""));
      expect(frames.length).toBe(Math.round(seconds * 30));
      expect(recording.audio?.segments).toBe(recording.video?.segments);
      expect(Math.abs((recording.audio?.durationSeconds ?? 0) - seconds)).toBeLessThan(0.6);
      await decoded(folder, "audio");
      // Again, as after a second crash.
      expect(await recover(folder)).toEqual(recording);
    }),
  );
});

test("what is left of a part is dropped, and missing audio becomes silence", async () => {
  const messages = await messagesOf(...picture(6), ...sound(6), ...x264(60), ...aac);
  const { packager, ...packaged } = collect();
  feed(packager, messages);
  await expect.poll(() => packaged.parts.filter(({ segment }) => segment === 2).length).toBeGreaterThan(4);
  const [video, audio] = ["180p", "audio"].map((name) => join(packaged.folder, name, "00002.m4s.open"));
  const lost = emptyFolder();
  for (const [name, path] of [
    ["180p", video],
    ["audio", audio],
  ] as const) {
    mkdirSync(join(lost, name));
    for (const file of ["init.mp4", "00001.m4s"])
      await writeFile(join(lost, name, file), await readFile(join(packaged.folder, name, file)));
    const part = packaged.parts.filter(
      ({ track, segment }) => track === (name === "audio" ? name : "video") && segment === 2,
    );
    const second = part[name === "audio" ? 1 : 2];
    const content = await readFile(path ?? "");
    // Video: two parts, and half of the third. Audio: one, and the first bytes of the second.
    const end = (second?.offset ?? 0) + (name === "audio" ? 5 : Math.round((second?.bytes ?? 0) / 2));
    await writeFile(join(lost, name, "00002.m4s.open"), content.subarray(0, end));
  }
  await packager.end();
  const recording = await recover(lost);
  expect(recording.video).toMatchObject({ segments: 2, durationSeconds: 5 });
  expect(recording.audio?.segments).toBe(2);
  expect(Math.abs((recording.audio?.durationSeconds ?? 0) - 5)).toBeLessThan(0.03);
  expect((await packetsIn(await decoded(lost, "180p"))).length).toBe(150);
  const packets = await packetsIn(await decoded(lost, "audio"));
  for (const [index, { pts }] of packets.slice(1).entries())
    expect(pts - (packets[index]?.pts ?? 0)).toBeCloseTo(1024 / 48_000, 4);
});

test("damaged files of a killed process are dropped", async () => {
  const folder = emptyFolder();
  mkdirSync(join(folder, "180p"));
  await writeFile(join(folder, "180p", "init.mp4"), Buffer.alloc(100));
  await writeFile(join(folder, "180p", "00001.m4s.open"), Buffer.alloc(100_000));
  expect(await recover(folder)).toEqual({ video: null, audio: null, durationSeconds: 0 });
  const { packager, ...packaged } = collect();
  feed(packager, await messagesOf(...picture(1), ...x264(30)));
  await packager.end();
  await writeFile(join(packaged.folder, "180p", "00002.m4s.open"), Buffer.alloc(100_000, "\0\0\0\x08moof"));
  expect((await recover(packaged.folder)).video).toMatchObject({ segments: 1, durationSeconds: 1 });
});

test("a file that ends anywhere, or is damaged anywhere, recovers to whole parts", async () => {
  const { packager, ...packaged } = collect();
  feed(packager, await messagesOf(...picture(3), ...x264(30)));
  await packager.end();
  const source = join(packaged.folder, "180p");
  const [init, content] = await Promise.all(["init.mp4", "00001.m4s"].map((file) => readFile(join(source, file))));
  if (!init || !content) throw new Error("no segment");
  const ends = packaged.parts.map(({ offset, bytes }) => offset + bytes);
  const folder = emptyFolder();
  mkdirSync(join(folder, "180p"));
  await writeFile(join(folder, "180p", "init.mp4"), init);
  const random = seeded();
  for (let round = 0; round < 200; round++) {
    const isTruncated = round % 2 === 0;
    const at = random.whole(0, content.length - 1);
    const left = Buffer.from(isTruncated ? content.subarray(0, at) : content);
    if (!isTruncated) left.fill(random.whole(0, 255), at, at + 8);
    await writeFile(join(folder, "180p", "00001.m4s.open"), left);
    const { video } = await recover(folder);
    const whole = ends.filter((end) => end <= at).length;
    const seconds = whole * 0.5;
    if (isTruncated) expect(video?.durationSeconds ?? 0).toBeCloseTo(seconds, 6);
    else expect(video?.segments ?? 0).toBeGreaterThanOrEqual(whole > 0 ? 1 : 0);
    rmSync(join(folder, "180p", "00001.m4s"), { force: true });
    expect(readdirSync(join(folder, "180p"))).toEqual(["init.mp4"]);
  }
});

const NOISE = [
  "-filter_complex",
  "[0][1]concat=n=2:v=1,noise=alls=90:allf=t:enable=gt(t\\,8)[v]",
  "-map",
  "[v]",
  "-map",
  "2",
];
const growing = () =>
  flv(
    ...["-f", "lavfi", "-i", "color=black:s=320x180:r=30:d=8", ...picture(6), ...sound(14), ...NOISE],
    ...[...x264(60), ...aac],
  );

test("a write that the file system cuts short ends the recording with the complete segments", async () => {
  const folder = emptyFolder();
  const limited = ["--fsize=120000", process.execPath, PROCESS, await growing(), folder, "0"];
  const lines = linesIn((await exec("prlimit", limited, { maxBuffer: 1 << 26 })).stdout);
  expect(lines.flatMap(({ health }) => (health ? [health.code] : []))).toEqual(["recording_stopped"]);
  const recording = lines.at(-1)?.recording;
  expect(recording?.video).toMatchObject({ segments: 2, durationSeconds: 8 });
  expect(recording?.audio?.segments).toBe(2);
  // Viewers still get the parts.
  const last = lines.flatMap(({ part }) => (part?.track === "video" ? [part] : [])).at(-1);
  expect(last).toMatchObject({ path: null, kept: true });
  expect((last?.startSeconds ?? 0) + (last?.durationSeconds ?? 0)).toBeCloseTo(14, 1);
  expect((await packetsIn(await decoded(folder, "180p"))).length).toBe(240);
  await decoded(folder, "audio");
});

test.each(rows([40_000, 0, 300_000], 1))(
  "the recording ends when a write after %d bytes is not admitted",
  async (allowed) => {
    const messages = await messagesOf(...picture(9), ...sound(9), ...x264(60), ...aac);
    let left = allowed;
    const folder = emptyFolder();
    const health: string[] = [];
    const packager = createPackager({
      folder,
      admit: async (bytes) => {
        left -= bytes;
        if (left < 0) throw new Error("The disk is full.");
      },
      onHealth: ({ code, message }) => health.push(`${code}: ${message}`),
    });
    feed(packager, messages);
    const recording = await packager.end();
    expect(health).toEqual(["recording_stopped: The recording stopped: The disk is full."]);
    expect(recording.video?.segments).toBe(recording.audio?.segments);
    for (const name of ["180p", "audio"]) {
      const files = allowed > 0 ? readdirSync(join(folder, name)) : [];
      expect(files.length).toBe(allowed > 0 ? 1 + (recording.video?.segments ?? 0) : 0);
      if (recording.video) await decoded(folder, name);
    }
  },
);

import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { mkdir, mkdtemp } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { rangeOf } from "#features/transcoding/tasks/chunks.ts";
import { encode } from "#media/encode.ts";
import { encodingSpec as spec } from "#media/encoding-spec.ts";
import { fileNames } from "#media/finish.ts";
import { encodeAudio } from "#media/parallel/audio.ts";
import { encodeChunk } from "#media/parallel/chunk.ts";
import { earlyNames, writeEarly, writeInits } from "#media/parallel/head.ts";
import { writeImages } from "#media/parallel/images.ts";
import { planSource } from "#media/parallel/plan-source.ts";
import { parsePlan } from "#media/parallel/stored-plan.ts";
import { Yielded } from "#media/parallel/yielded.ts";
import { readFromFolder } from "#media/sample-video.ts";
import { probeSource as probe } from "#media/timeline.ts";
import type { PlanResult, WrittenRendition } from "#protocol/task.ts";
import { rows } from "#test/support/amount.ts";
import { packetsOf, similarity } from "#test/support/media/parallel/frames.ts";
import { binaries, ffmpeg, ffprobe, temporaryFolder } from "#test/support/media/sources.ts";

const folder = temporaryFolder("early-parts");
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test.each(rows(["30", "24000/1001"], 1))(
  "renditions and ranges encoded apart are those of one run, as listed before: %s",
  async (rate) => {
    const input = join(folder, "source.mp4");
    const sources = [
      "-f",
      "lavfi",
      "-i",
      `testsrc2=s=854x480:r=${rate}:d=21.5`,
      "-f",
      "lavfi",
      "-i",
      "sine=d=21.5:r=44100",
    ];
    await ffmpeg(
      ...sources,
      "-c:v",
      "libx264",
      "-preset",
      "ultrafast",
      "-crf",
      "14",
      "-g",
      "97",
      "-c:a",
      "aac",
      "-movflags",
      "+faststart",
      input,
    );
    const media = await probe(input, binaries);
    const outDir = await mkdtemp(join(folder, "parts-"));
    const wholeDir = await mkdtemp(join(folder, "whole-"));
    const run = { cwd: await mkdtemp(join(folder, "cwd-")), reads: [input], writes: [outDir] };
    const planned = await planSource({ input, probe: media, spec, binaries, run });
    // A source that could be copied is encoded here.
    const video = planned.plan.video as object;
    const plan = parsePlan(JSON.parse(JSON.stringify({ ...planned.plan, video: { ...video, passthrough: null } })));
    expect(planned.early).toMatchObject({ segments: 6, renditions: [{ name: "480p" }, { name: "360p" }] });

    const common = { input, outDir, plan, spec, binaries, run };
    const grid = { frame_rate: planned.frame_rate as NonNullable<PlanResult["frame_rate"]>, segment_seconds: 4 };
    const parts: WrittenRendition[] = [];
    const placed: string[] = [];
    const part = async (from: number, to: number | null, renditions: string[] | null) => {
      const workDir = await mkdtemp(join(folder, "work-"));
      const chunk = rangeOf(grid, { number: 0, from, to, renditions });
      const onPlaced = async (files: string[]) => void placed.push(...files);
      const { written } = await encodeChunk({ ...common, workDir, chunk, onPlaced });
      parts.push(...written);
      return written;
    };

    const head = await part(0, 1, ["360p"]);
    expect(readdirSync(outDir)).toEqual(["360p"]);
    await writeInits({ ...common, workDir: join(folder, "inits"), renditions: ["480p"] });
    const inits = () => ["480p", "360p", "audio"].map((name) => readFileSync(join(outDir, name, "init.mp4")));
    const before = inits();
    // They need only the beginning of the source.
    const begun = join(folder, "begun.mp4");
    writeFileSync(begun, readFileSync(input).fill(0, Math.round(statSync(input).size / 2)));
    const log: string[] = [];
    const elsewhere = await mkdtemp(join(folder, "begun-"));
    await writeInits({
      ...common,
      input: begun,
      outDir: elsewhere,
      workDir: join(folder, "inits"),
      renditions: ["480p"],
      run: { ...run, reads: [begun], writes: [elsewhere], onLog: (line) => log.push(line) },
    });
    expect(log.filter((line) => !line.includes("No bit rate set"))).toEqual([]);
    for (const [index, name] of [[0, "480p"] as const, [2, "audio"] as const])
      expect(readFileSync(join(elsewhere, name, "init.mp4"))).toEqual(before[index]);
    const early = await writeEarly({ ...common, written: head, names: earlyNames(fileNames(spec)) });
    expect(early.renditions.map(({ name }) => name)).toEqual(["480p", "360p"]);

    await part(1, 3, ["360p"]);
    await part(3, 4, ["480p"]);
    await part(3, 4, ["360p"]);
    await part(4, null, null);
    await part(0, 3, ["480p"]);
    // The longest of them was placed while ffmpeg ran.
    expect(placed.length).toBeGreaterThan(0);
    parts.push(...(await encodeAudio(common)));
    expect(inits()).toEqual(before);

    const merged = ["480p", "360p", "audio"].map((name) => {
      const own = parts.filter((one) => one.name === name).sort((a, b) => a.first - b.first);
      return { ...(own[0] as WrittenRendition), segments: own.flatMap(({ segments }) => segments) };
    });
    await mkdir(run.cwd, { recursive: true });
    const read = readFromFolder(outDir);
    await writeImages({ plan, written: merged, outDir, read, spec, names: fileNames(spec), binaries, run });
    await encode({ input, outDir: wholeDir, spec, binaries, scratchDir: folder, probe: media });
    for (const name of ["480p", "360p", "audio"]) {
      const text = (dir: string, file: string) => readFileSync(join(dir, name, file), "utf8");
      expect(text(outDir, "playlist.m3u8"), name).toBe(text(wholeDir, "playlist.m3u8"));
      const durations = (file: string) => text(outDir, file).match(/#EXTINF:[\d.]+/g) ?? [];
      const listed = durations("early-playlist.m3u8");
      const real = durations("playlist.m3u8");
      expect(listed.slice(0, -1), name).toEqual(real.slice(0, -1));
      expect(listed.length).toBe(real.length);
      const last = (all: string[]) => Number(all.at(-1)?.slice("#EXTINF:".length));
      expect(Math.abs(last(listed) - last(real)), name).toBeLessThan(0.1);
      expect(await packetsOf(outDir, name)).toEqual(await packetsOf(wholeDir, name));
    }
    for (const name of ["480p", "360p"])
      expect(Math.min(...(await similarity(outDir, wholeDir, name)))).toBeGreaterThan(30);
  },
);

test.each(
  rows(
    [
      ["on the grid", null],
      ["of two keyframes of the source each", Array.from({ length: 11 }, () => 60)],
    ],
    1,
  ),
)(
  "a chunk that is to yield ends with the segments that are complete, and the rest continues them: %s",
  async (_, keyDistances) => {
    const input = join(folder, "long.mp4");
    const noise = "testsrc2=s=854x480:r=30:d=24,noise=alls=6:allf=t";
    await ffmpeg("-f", "lavfi", "-i", noise, "-c:v", "libx264", "-preset", "ultrafast", "-g", "60", input);
    const run = { cwd: await mkdtemp(join(folder, "cwd-")), reads: [input], writes: [folder] };
    const media = await probe(input, binaries);
    const planned = await planSource({ input, probe: media, spec, binaries, run });
    const video = planned.plan.video as object;
    const passthrough = keyDistances && { keyDistances, isCopied: true };
    const plan = parsePlan(JSON.parse(JSON.stringify({ ...planned.plan, video: { ...video, passthrough } })));
    const segment_frames = keyDistances && Array.from({ length: 6 }, (_, segment) => segment * 120);
    const rate = planned.frame_rate as NonNullable<PlanResult["frame_rate"]>;
    const grid = { frame_rate: rate, segment_seconds: 4, ...(segment_frames && { segment_frames }) };
    // The copied one is a task of its own.
    const renditions = keyDistances && ["360p"];
    const outDir = await mkdtemp(join(folder, "yielded-"));
    const joined = join(folder, "joined.mp4");
    const part = async (from: number, yielding?: AbortController) => {
      const chunk = rangeOf(grid, { number: from, from, to: keyDistances ? null : 6, renditions });
      const workDir = await mkdtemp(join(folder, "work-"));
      const onPlaced = async () => yielding?.abort();
      return encodeChunk({
        input,
        outDir,
        plan,
        spec,
        binaries,
        run,
        chunk,
        workDir,
        onPlaced,
        yielding: yielding?.signal,
      });
    };
    const early = new AbortController();
    early.abort();
    await expect(part(0, early)).rejects.toThrow(Yielded);
    expect(readdirSync(outDir)).toEqual([]);

    const first = await part(0, new AbortController());
    const count = first.written[0]?.segments.length ?? 0;
    expect(first.isPartial).toBe(true);
    expect(count).toBeGreaterThan(0);
    expect(count).toBeLessThan(6);
    const rest = await part(count);
    expect(rest.isPartial).toBe(false);
    for (const [index, { name, init, segments }] of first.written.entries()) {
      const last = rest.written[index] as WrittenRendition;
      expect([last.name, last.init, last.first]).toEqual([name, init, count]);
      const frames = [...segments, ...last.segments].map(([, start, duration]) => [start, duration]);
      const ticks = 4 * init.timescale;
      expect(frames).toEqual(Array.from({ length: 6 }, (_, n) => [n * ticks, ticks]));
      const files = ["init.mp4", ...frames.map((_, n) => `0000${n + 1}.m4s`)].map((file) => join(outDir, name, file));
      writeFileSync(joined, Buffer.concat(files.map((file) => readFileSync(file))));
      const counted = ["-count_frames", "-show_entries", "stream=nb_read_frames", "-of", "csv=p=0"];
      expect((await ffprobe(...counted, joined)).trim()).toBe(String(24 * 30));
    }
  },
);

import { readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { encode } from "#media/encode.ts";
import { encodingSpec as spec } from "#media/encoding-spec.ts";
import { run, untrustedInput } from "#media/ffmpeg.ts";
import { probeSource as probe } from "#media/timeline.ts";
import { killOrphans, processStartTime, recordProcess } from "#src/lib/sandbox/orphan-processes.ts";
import { binaries, fast, ffmpeg, picture, temporaryFolder } from "#test/support/media/sources.ts";

const folder = temporaryFolder("hostile");
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const written = (name: string, content: string | Buffer) => {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
};

describe("files that are not media are refused immediately", () => {
  test.each([
    ["text", "notes.mp4", "These are my notes.\n".repeat(50)],
    ["zeros", "zero.mp4", Buffer.alloc(100_000)],
    ["a torn header", "torn.mp4", Buffer.from("\0\0\0\x20ftypisom\0\0\0\0isom", "latin1")],
    ["subtitles", "words.mp4", "1\n00:00:01,000 --> 00:00:02,000\nHello\n"],
    ["an image", "drawing.mp4", '<svg xmlns="http://www.w3.org/2000/svg"/>'],
  ])("%s", async (_, name, content) => {
    await expect(probe(written(name, content), binaries)).rejects.toMatchObject({
      code: "input_invalid",
      retryable: false,
    });
  });
});

describe("a list of other files", () => {
  const canary = join(folder, "canary.ts");
  const lists = {
    "playlist.mp4": `#EXTM3U\n#EXT-X-TARGETDURATION:9\n#EXTINF:9,\nfile://${canary}\n#EXT-X-ENDLIST\n`,
    "concat.mp4": `ffconcat version 1.0\nfile '${canary}'\n`,
    "manifest.mp4": `<?xml version="1.0"?><MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" mediaPresentationDuration="PT9S"><Period><AdaptationSet mimeType="video/mp4"><Representation id="1" bandwidth="1"><BaseURL>file://${canary}</BaseURL></Representation></AdaptationSet></Period></MPD>`,
  };

  test("is never followed", async () => {
    await ffmpeg(...picture("320x180", "25", 1), ...fast, canary);
    for (const [name, content] of Object.entries(lists)) {
      const path = written(name, content);
      await expect(probe(path, binaries), name).rejects.toMatchObject({ code: "input_invalid" });
      // Nor by the encoder, if a probe is ever deceived.
      const out = join(folder, "stolen.mp4");
      await expect(
        run(binaries.ffmpeg, {
          args: ["-nostdin", ...untrustedInput(path), "-c", "copy", out],
          cwd: folder,
          timeLimitMs: 20_000,
        }),
      ).rejects.toMatchObject({ code: "input_invalid" });
      expect(readdirSync(folder)).not.toContain("stolen.mp4");
    }
  });
});

test("a source that claims to last for years is refused before it is encoded", async () => {
  const path = join(folder, "plain.mp4");
  await ffmpeg(...picture("320x180", "25", 1), ...fast, path);
  const read = await probe(path, binaries);
  const claimed = { ...read, video: read.video && { ...read.video, durationSeconds: 1e9 } };
  await expect(
    encode({ input: path, outDir: join(folder, "never"), probe: claimed, spec, binaries }),
  ).rejects.toMatchObject({ code: "source_too_long" });
});

describe("a run", () => {
  const endless = [
    "-nostdin",
    "-re",
    "-f",
    "lavfi",
    "-i",
    "testsrc2=s=64x64",
    "-progress",
    "pipe:1",
    "-f",
    "null",
    "-",
  ];

  test("ends with its signal, and leaves no record", async () => {
    const controller = new AbortController();
    const pidDir = join(folder, "pids");
    const onPosition = () => controller.abort();
    await expect(
      run("ffmpeg", { args: endless, cwd: folder, timeLimitMs: 30_000, signal: controller.signal, onPosition, pidDir }),
    ).rejects.toMatchObject({ code: "aborted" });
    expect(readdirSync(pidDir)).toEqual([]);
  });

  test("may end before its record is written", async () => {
    const pidDir = join(folder, "quick");
    const quick = Array.from({ length: 50 }, () =>
      run("/bin/true", { args: [], cwd: folder, timeLimitMs: 5000, pidDir }),
    );
    await Promise.all(quick);
    expect(readdirSync(folder).includes("quick") ? readdirSync(pidDir) : []).toEqual([]);
  });

  test("ends at its time limit", async () => {
    await expect(run("ffmpeg", { args: endless, cwd: folder, timeLimitMs: 300 })).rejects.toMatchObject({
      code: "timeout",
    });
  });

  test("ends when its output position does not advance", async () => {
    const stuck = [
      "-nostdin",
      "-f",
      "lavfi",
      "-i",
      "testsrc2=s=64x64,select=0",
      "-progress",
      "pipe:1",
      "-f",
      "null",
      "-",
    ];
    await expect(run("ffmpeg", { args: stuck, cwd: folder, timeLimitMs: 30_000, stallMs: 1500 })).rejects.toMatchObject(
      { code: "timeout", message: "ffmpeg stopped making progress." },
    );
  });

  test("passes on none of our environment, and returns the end of a long log without the directory's name", async () => {
    process.env.CANARY_TOKEN = "canary-value";
    // By the shell itself: a program may not start others.
    const script = [
      "-c",
      "export -p; i=0; while [ $i -lt 2000 ]; do echo line $i of $PWD >&2; i=$((i+1)); done; exit 1",
    ];
    const error = await run("/bin/sh", { args: script, cwd: folder, timeLimitMs: 20_000 }).catch((thrown) => thrown);
    expect(error.logTail.length).toBeLessThan(8300);
    expect(error.logTail).toContain("line 1999 of .");
    expect(error.logTail).not.toContain(folder);
    const out = await run("/bin/sh", { args: ["-c", "export -p"], cwd: folder, timeLimitMs: 20_000 });
    expect(out.toString()).not.toContain("canary-value");
  });

  test("a full disk is reported as such", async () => {
    const script = ["-c", "echo 'av_interleaved_write_frame(): No space left on device' >&2; exit 1"];
    await expect(run("/bin/sh", { args: script, cwd: folder, timeLimitMs: 20_000 })).rejects.toMatchObject({
      code: "out_of_space",
      retryable: true,
    });
  });

  test("a missing program is reported as such", async () => {
    await expect(run("/nowhere/ffmpeg", { args: [], cwd: folder, timeLimitMs: 20_000 })).rejects.toMatchObject({
      code: "encode_failed",
    });
  });
});

test("processes of a dead worker are killed, and a reused pid is spared", async () => {
  const { spawn } = await import("node:child_process");
  const left = spawn("sleep", ["600"]);
  const ended = new Promise((resolve) => left.on("exit", (_, signal) => resolve(signal)));
  const pids = join(folder, "left");
  await recordProcess(pids, left.pid as number);
  writeFileSync(join(pids, `${process.pid}-1`), "");
  expect(await killOrphans(pids)).toBe(1);
  expect(await ended).toBe("SIGKILL");
  expect(await processStartTime(process.pid)).not.toBe("1");
  expect(readdirSync(pids)).toEqual([]);
});

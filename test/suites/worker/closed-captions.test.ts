import { readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { captionUnit, erase, type Pair, popOn } from "#test/support/live/closed-captions.ts";
import { writeCaptioned } from "#test/support/media/captioned-source.ts";
import { pairsByFrame } from "#test/support/media/source-captions.ts";
import { binaries, fast, ffmpeg, picture, temporaryFolder } from "#test/support/media/sources.ts";
import { processesWith } from "#test/support/worker/processes.ts";
import { startWorker } from "#worker/loop.ts";
import { ContractServer, PREFIX, WORKER } from "./contract-server.ts";

const folder = temporaryFolder("closed-captions");
const captioned = join(folder, "captioned.mkv");
const source = join(folder, "source.mkv");
const NOTHING: Pair = [0x80, 0x80];

beforeAll(async () => {
  const pairs = pairsByFrame([
    [0, popOn("HELLO")],
    [2000, erase()],
  ]);
  await writeCaptioned(captioned, {
    video: [...picture("320x180", "30", 3), ...fast],
    units: ({ index }) => captionUnit([pairs.get(index) ?? NOTHING]),
  });
  const texts = join(folder, "texts.srt");
  writeFileSync(texts, "1\n00:00:01,000 --> 00:00:02,000\nWritten\n");
  await ffmpeg("-i", captioned, "-i", texts, "-map", "0", "-map", "1", "-c", "copy", source);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Runs the only job to its end, and returns what the server received. */
async function outcome({ closedCaptions = true, textTracks = false, tools = binaries } = {}) {
  await using server = await ContractServer.start(source);
  Object.assign(server, { closedCaptions, textTracks });
  const controller = new AbortController();
  const scratchDir = join(folder, `scratch-${readdirSync(folder).length}`);
  const messages: string[] = [];
  const say = (_: Record<string, unknown>, message: string) => messages.push(message);
  const done = startWorker({
    server: server.base,
    token: () => WORKER,
    workerId: "w1",
    scratchDir,
    binaries: tools,
    signal: controller.signal,
    log: { info: say, warn: say, error: say },
    transcriber: null,
  });
  done.catch(() => {});
  await server.until((one) => one.named("complete").length + one.named("fail").length > 0, 100_000);
  controller.abort();
  await done;
  expect(readdirSync(scratchDir)).toEqual([]);
  expect(processesWith(scratchDir)).toEqual([]);
  return { complete: server.named("complete")[0]?.body, stored: server.stored, messages };
}

const PATH = `${PREFIX}closed-captions/cc1.vtt`;

test("closed captions are uploaded with the results, where the contract asks for them", async () => {
  const { complete, stored } = await outcome();
  expect(complete).toMatchObject({ closed_captions: { tracks: { cc1: { path: PATH } } } });
  expect(stored.get(PATH)?.toString()).toBe("WEBVTT\n\n00:00:00.300 --> 00:00:02.000\nHELLO\n");
  // An older server.
  const other = await outcome({ closedCaptions: false });
  expect(other.complete).not.toHaveProperty("closed_captions");
  expect(other.stored.has(PATH)).toBe(false);
});

test("text tracks are among them, where the contract asks for these", async () => {
  const path = `${PREFIX}closed-captions/track2.vtt`;
  const described = { language: "und", label: null, kind: "subtitles", is_default: false, skipped_cues: 0 };
  const { complete, stored } = await outcome({ textTracks: true });
  expect(complete).toMatchObject({
    closed_captions: { tracks: { cc1: { path: PATH }, track2: { path, ...described } } },
  });
  expect(stored.get(path)?.toString()).toBe("WEBVTT\n\n00:00:01.000 --> 00:00:02.000\nWritten\n");
  // A server of the version before refuses other names.
  const { complete: older } = await outcome();
  expect(older).toMatchObject({ closed_captions: { tracks: { cc1: { path: PATH } } } });
  expect(older).not.toHaveProperty("closed_captions.tracks.track2");
});

test("captions that cannot be read fail nothing else", async () => {
  const tools = { ...binaries, ffmpeg: join(folder, "ffmpeg.sh") };
  // It runs without the sandbox, in which the other program is missing.
  const lines = [
    "#!/bin/sh",
    `[ -x ${binaries.ffmpeg} ] || exit 127`,
    `case " $* " in *filter_units*) echo "Conversion failed!" >&2; exit 1;; esac`,
    `exec ${binaries.ffmpeg} "$@"`,
  ];
  writeFileSync(tools.ffmpeg, lines.join("\n"), { mode: 0o755 });
  const { complete, stored, messages } = await outcome({ tools });
  expect(complete).toMatchObject({
    manifest_path: `${PREFIX}master.m3u8`,
    closed_captions: { tracks: {}, failed: true },
  });
  expect(stored.has(`${PREFIX}master.m3u8`)).toBe(true);
  expect(messages).toContain("The closed captions in the video could not be read.");
});

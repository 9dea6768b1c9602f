import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { encode } from "#media/encode.ts";
import { encodingSpec as spec } from "#media/encoding-spec.ts";
import { probeSource } from "#media/timeline.ts";
import { rows, sample } from "#test/support/amount.ts";
import { sharedBrowser } from "#test/support/browser/browser.ts";
import { beeps, beepsOf, flashes, flashesOf, worstOffset } from "#test/support/media/beeps.ts";
import { Players } from "#test/support/media/matrix-players.ts";
import { binaries, fast, ffmpeg, temporaryFolder } from "#test/support/media/sources.ts";

/** What a browser records plays as it was recorded, and audio and video are in sync in each player. */

const folder = temporaryFolder("recordings");
const players = new Players(folder);
afterAll(async () => {
  await players.close();
  rmSync(folder, { recursive: true, force: true });
});

/** The distance of a beep from its flash that people begin to notice (ITU-R BT.1359-1, figure 2). */
const APART_SECONDS = 0.045;
const RATE = 30;
const PLAYLIST = "master.m3u8";

async function encoded(name: string) {
  const input = join(folder, name);
  const outDir = `${input}-out`;
  const probe = await probeSource(input, binaries);
  const result = await encode({ input, outDir, probe, spec, binaries, scratchDir: folder });
  return { ...result, playlist: join(outDir, PLAYLIST) };
}

type Recording = {
  name: string;
  type: string;
  seconds: number;
  /** What happens in the page after so many seconds. */
  later?: { after: number; change: "rotate" | "pause" };
  isStill?: boolean;
  hasVideo?: boolean;
};

const RECORDINGS: Recording[] = [
  { name: "VP8", type: "video/webm;codecs=vp8,opus", seconds: 5 },
  { name: "VP9", type: "video/webm;codecs=vp9,opus", seconds: 5 },
  { name: "another size", type: "video/webm;codecs=vp8,opus", seconds: 6, later: { after: 2.6, change: "rotate" } },
  { name: "a pause", type: "video/webm;codecs=vp8,opus", seconds: 5, later: { after: 2.6, change: "pause" } },
  { name: "a still image", type: "video/webm;codecs=vp8,opus", seconds: 5, isStill: true },
  { name: "audio alone", type: "audio/webm;codecs=opus", seconds: 5, hasVideo: false },
];

/** Runs in the page, and returns what was recorded in base64. Each second begins with a flash and a beep. */
const RECORD = `async ({ type, seconds, later, isStill = false, hasVideo = true }) => {
  const canvas = Object.assign(document.createElement("canvas"), { width: 320, height: 240 });
  const context = canvas.getContext("2d");
  const audio = new AudioContext();
  await audio.resume();
  const oscillator = audio.createOscillator();
  const gain = audio.createGain();
  const output = audio.createMediaStreamDestination();
  gain.gain.value = 0;
  oscillator.frequency.value = 1000;
  oscillator.connect(gain).connect(output);
  oscillator.start();
  const start = audio.currentTime + 0.2;
  for (let second = 0; second < seconds + 4; second++) {
    gain.gain.setValueAtTime(0.8, start + second + 0.4);
    gain.gain.setValueAtTime(0, start + second + 0.5);
  }
  const draw = () => {
    const at = (audio.currentTime - start + 10) % 1;
    context.fillStyle = !isStill && at >= 0.4 && at < 0.5 ? "white" : "black";
    context.fillRect(0, 0, canvas.width, canvas.height);
  };
  draw();
  const tracks = [...(hasVideo ? canvas.captureStream(30).getVideoTracks() : []), ...output.stream.getAudioTracks()];
  const recorder = new MediaRecorder(new MediaStream(tracks), { mimeType: type, videoBitsPerSecond: 1_000_000 });
  const parts = [];
  recorder.ondataavailable = ({ data }) => parts.push(data);
  recorder.start(500);
  const timer = isStill ? 0 : setInterval(draw, 15);
  // A recording takes as long as what it records: by the clock of its audio.
  const begun = audio.currentTime;
  const until = (seconds) =>
    new Promise((done) => {
      const watch = setInterval(() => {
        if (audio.currentTime - begun < seconds) return;
        clearInterval(watch);
        done();
      }, 10);
    });
  const pause = later?.change === "pause" ? 1.3 : 0;
  await until(later ? later.after : seconds);
  if (later?.change === "rotate") Object.assign(canvas, { width: 240, height: 320 });
  if (pause > 0) {
    recorder.pause();
    await until(later.after + pause);
    recorder.resume();
  }
  await until(seconds + pause);
  const isOver = new Promise((done) => recorder.addEventListener("stop", done));
  recorder.stop();
  await isOver;
  clearInterval(timer);
  await audio.close();
  const reader = new FileReader();
  const isRead = new Promise((done) => reader.addEventListener("load", done));
  reader.readAsDataURL(new Blob(parts));
  await isRead;
  return reader.result.slice(reader.result.indexOf(",") + 1);
}`;

test.each(sample(RECORDINGS, 1).map((one) => [one.name, one] as const))("a recording: %s", async (name, recording) => {
  const page = await (await sharedBrowser("--autoplay-policy=no-user-gesture-required")).newPage();
  const file = `${name.replaceAll(" ", "-")}.webm`;
  try {
    const data = (await page.evaluate(`(${RECORD})(${JSON.stringify(recording)})`)) as string;
    writeFileSync(join(folder, file), Buffer.from(data, "base64"));
  } finally {
    await page.close();
  }
  const { hasVideo = true, isStill = false, seconds } = recording;
  const source = join(folder, file);
  const heardBefore = await beepsOf(source);
  const seenBefore = hasVideo ? await flashesOf(source, RATE) : [];
  // A busy machine may leave out frames of the recording, but what is in it is in the result.
  expect(heardBefore.length).toBeGreaterThanOrEqual(seconds - 1);
  expect(seenBefore.length).toBeGreaterThanOrEqual(hasVideo && !isStill ? seconds - 2 : 0);
  const result = await encoded(file);
  expect(result.durationSeconds).toBeGreaterThan(seconds - 1);
  expect(result.durationSeconds).toBeLessThan(seconds + 2);
  const rate = result.frameRate ?? RATE;
  const heard = await beepsOf(result.playlist);
  const seen = hasVideo ? await flashesOf(result.playlist, rate) : [];
  expect(worstOffset(heard, heardBefore, heardBefore.length), `${heard} of ${heardBefore}`).toBeLessThan(APART_SECONDS);
  // Frames of the recording and of the result are on different grids.
  expect(worstOffset(seen, seenBefore, seenBefore.length), `${seen} of ${seenBefore}`).toBeLessThan(
    APART_SECONDS + 1 / rate,
  );
});

/** An init segment and the media segments in the order of their times: a player may request one again, or earlier. */
function inOrder(pieces: readonly Buffer[]): Buffer {
  const timeOf = (piece: Buffer) => {
    // Version 1 (ISO/IEC 14496-12, 8.8.12).
    const at = piece.indexOf("tfdt");
    return at < 0 ? -1 : Number(piece.readBigUInt64BE(at + 8));
  };
  const byTime = new Map(pieces.map((piece) => [timeOf(piece), piece]));
  return Buffer.concat([...byTime].toSorted(([one], [other]) => one - other).map(([, piece]) => piece));
}

describe("what a player gives to the browser", () => {
  test.each(rows(["ts", "mp4", "mkv"], 1))("has each beep at its flash, of a source in .%s", async (ending) => {
    const name = `beeps.${ending}`;
    const seconds = 9;
    await ffmpeg(
      ...[...flashes("320x180", RATE, seconds), ...beeps(seconds), ...fast, "-pix_fmt", "yuv420p", "-c:a", "aac"],
      join(folder, name),
    );
    await encoded(name);
    const appended = await players.appended(`${name}-out`);
    for (const player of ["hls.js", "dash.js", "shaka"]) {
      const own = appended.filter((one) => one.player === player);
      mkdirSync(join(folder, player), { recursive: true });
      const pathOf = (kind: "audio" | "video") => {
        const path = join(folder, player, `${ending}-${kind}.mp4`);
        writeFileSync(path, inOrder(own.filter(({ type }) => type.startsWith(kind)).map(({ data }) => data)));
        return path;
      };
      expect(own.map(({ offset }) => Math.abs(offset)).every((offset) => offset < 0.001)).toBe(true);
      const heard = await beepsOf(pathOf("audio"));
      const seen = await flashesOf(pathOf("video"), RATE);
      expect(seen).toHaveLength(seconds);
      expect(worstOffset(heard, seen, seconds), `${player}: ${heard} and ${seen}`).toBeLessThan(APART_SECONDS);
    }
  });
});

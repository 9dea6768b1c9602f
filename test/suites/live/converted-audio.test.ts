import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { rows } from "#test/support/amount.ts";
import { descendantsOf, signalAll, until } from "#test/support/descendants.ts";
import { startPublisher } from "#test/support/live/ffmpeg-publisher.ts";
import { watchedGateway } from "#test/support/live/live-watcher.ts";
import { startRtmp } from "#test/support/live/rtmp-recorder.ts";
import { startSrt } from "#test/support/live/srt-recorder.ts";
import { signalAudio, signalVideo } from "#test/support/live/whip-media.ts";
import { ffprobe } from "#test/support/media/sources.ts";
import { expectOneStream, untilFinished } from "./one-stream.ts";
import { signalsOf } from "./whip-server.ts";

/** Audio that encoders send and players do not all decode becomes AAC, in sync with the video. */

const SECONDS = 7;

/** `rate`: samples per second of the recording. `isBusy`: the encoder of audio pauses for a while. */
type Row = { what: string; protocol: "rtmp" | "srt"; audio: string; rate: number; isBusy?: boolean };

const ROWS: readonly Row[] = [
  {
    what: "MP3 over RTMP, which ffmpeg sends where no codec is named",
    protocol: "rtmp",
    audio: "libmp3lame -ar 44100",
    rate: 44_100,
  },
  { what: "MP3 over RTMP, on a busy machine", protocol: "rtmp", audio: "libmp3lame", rate: 48_000, isBusy: true },
  { what: "AC-3 with six channels over SRT", protocol: "srt", audio: "ac3 -ac 6", rate: 48_000 },
  { what: "Opus over SRT", protocol: "srt", audio: "libopus", rate: 48_000 },
  { what: "MP2 over SRT", protocol: "srt", audio: "mp2", rate: 48_000 },
  { what: "MP3 of MPEG-2, mono, over RTMP", protocol: "rtmp", audio: "libmp3lame -ar 22050 -ac 1", rate: 22_050 },
  { what: "MP3 over SRT", protocol: "srt", audio: "libmp3lame", rate: 48_000 },
  { what: "Enhanced AC-3 over SRT", protocol: "srt", audio: "eac3", rate: 48_000 },
  { what: "MP2 of 32 kHz over SRT", protocol: "srt", audio: "mp2 -ar 32000 -b:a 64k", rate: 32_000 },
  {
    what: "Opus in packets of 60 ms over SRT",
    protocol: "srt",
    audio: "libopus -frame_duration 60 -ac 1",
    rate: 48_000,
  },
];

/** The encoders of audio pause for 3 s, once `hasBegun`. */
async function pauseEncoders(hasBegun: () => boolean): Promise<void> {
  await until("the stream has begun", hasBegun);
  const encoders = descendantsOf(process.pid).filter(({ command }) => command.endsWith("-f adts pipe:1"));
  expect(encoders.length).toBeGreaterThan(0);
  signalAll(encoders, "SIGSTOP");
  // Real time: the publisher does not stop meanwhile.
  await sleep(3000);
  signalAll(encoders, "SIGCONT");
}

test.each(rows(ROWS, 3))("$what", async ({ protocol, audio, rate, isBusy }) => {
  const watched = watchedGateway();
  const authorize = watched.gateway.authorize.bind(watched.gateway);
  const { port, log } = protocol === "rtmp" ? await startRtmp({ authorize }) : await startSrt({ authorize });
  const url =
    protocol === "rtmp"
      ? `rtmp://127.0.0.1:${port}/live/name?key=x`
      : `srt://127.0.0.1:${port}?streamid=publish:live/name:key=x&linger=5`;
  const publisher = startPublisher([
    ...["-re", ...signalVideo(SECONDS), "-re", ...signalAudio(SECONDS)],
    ..."-c:v libx264 -preset ultrafast -pix_fmt yuv420p -g 30 -c:a".split(" "),
    ...[...audio.split(" "), "-f", protocol === "rtmp" ? "flv" : "mpegts", url],
  ]);
  if (isBusy) await pauseEncoders(() => watched.streams.length > 0);
  const [code] = await publisher.exit;
  expect([code, publisher.stderr()]).toEqual([0, ""]);
  await untilFinished(watched);
  expect(log.filter(({ level }) => level !== "info")).toEqual([]);
  await expectOneStream(watched, { seconds: SECONDS });
  const [stream] = watched.streams;
  const recording = join(watched.folder, `${stream?.name}.recording`, stream?.finished?.manifest ?? "");
  const fields = ["-select_streams", "a", "-show_entries", "stream=codec_name,sample_rate,channels", "-of", "csv=p=0"];
  const shown = (await ffprobe(...fields, recording)).split("\n").filter((line) => line !== "");
  expect(new Set(shown)).toEqual(new Set([`aac,${rate},2`]));
  const signals = await signalsOf(recording);
  const distances = signals.audio.map((time) => Math.min(...signals.video.map((other) => Math.abs(other - time))));
  expect([distances.filter((distance) => distance < 0.03).length >= SECONDS - 1, signals]).toEqual([true, signals]);
});

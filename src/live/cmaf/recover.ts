import { rm } from "node:fs/promises";
import { join } from "node:path";
import { encodableAudioCodecs, type Rate } from "#lib/codecs";
import { boxes, find, type TimedSample, uint16 } from "#lib/isobmff";
import { segmentFileName } from "#media/arguments.ts";
import { frameRateOf } from "./frame-clock.ts";
import { completeOpen, discardOpen, endOf, type InterruptedTrack, readTracks, recordedTrack } from "./recover-track.ts";
import { scanSegment } from "./scan-segment.ts";
import type { Recording } from "./types.ts";

/**
 * Completes the recording in a folder whose process was killed: keeps the whole fragments of the open segments, and ends
 * the audio with the video, in as many segments. Returns what the packager's `end` would have. Throws the error of the
 * file system.
 */
export async function recover(folder: string): Promise<Recording> {
  const tracks = await readTracks(folder);
  const video = tracks.find(({ kind }) => kind === "video") ?? null;
  const audio = tracks.find(({ kind }) => kind === "audio") ?? null;
  if (video) await completeOpen(video, { fragments: video.open, samples: [], time: 0 });
  const recordedVideo = video && recordedTrack(video, null);
  // Without a frame there is nothing that the audio belongs to.
  if (video && !recordedVideo) return { video: null, audio: null, durationSeconds: 0 };
  if (audio && video) await endWith(audio, video);
  else if (audio) await completeOpen(audio, { fragments: audio.open, samples: [], time: 0 });
  const recordedAudio = audio && recordedTrack(audio, channelsOf(audio));
  return {
    video: video && recordedVideo ? { ...recordedVideo, rate: await rateOf(video) } : null,
    audio: recordedAudio,
    durationSeconds: (recordedVideo ?? recordedAudio)?.durationSeconds ?? 0,
  };
}

/** Drops audio after the end of the video, and replaces missing audio by silence. */
async function endWith(audio: InterruptedTrack, video: InterruptedTrack): Promise<void> {
  // It belongs to a segment that the video does not have.
  if (audio.segments.length >= video.segments.length) await discardOpen(audio);
  for (const { name } of audio.segments.splice(video.segments.length)) await rm(join(audio.folder, name));
  const { init } = audio;
  for (const segment of video.segments.slice(audio.segments.length)) {
    const end = Math.round(endOf(video, segment) * init.timescale) + init.delay;
    const fragments = audio.open.filter(({ time }) => time < end);
    const last = fragments.at(-1);
    const before = audio.segments.at(-1);
    const time = last ? last.time + last.duration : before ? before.start + before.duration : 0;
    await completeOpen(audio, { fragments, samples: silenceOf(audio, end - time), time });
  }
}

/** Empty where no packet of silence is known for the format. */
function silenceOf(audio: InterruptedTrack, duration: number): TimedSample[] {
  const [sampleEntry = ""] = audio.init.codec.split(".");
  const codec = encodableAudioCodecs.find(({ sampleEntries }) => sampleEntries.some((one) => one === sampleEntry));
  const data = codec?.silentPacket(audio.init.codec, channelsOf(audio));
  if (!codec || !data) return [];
  const { packetSamples } = codec;
  return Array.from({ length: Math.max(0, Math.round(duration / packetSamples)) }, () => ({
    data,
    duration: packetSamples,
    compositionOffset: 0,
    isSync: true,
  }));
}

/** ISO/IEC 14496-12, 12.2.3. */
function channelsOf({ initData }: InterruptedTrack): number {
  const stsd = find(initData, ["moov", "trak", "mdia", "minf", "stbl", "stsd"]);
  const entry = stsd && boxes(initData, stsd.start + 8, stsd.end).next().value;
  return entry ? uint16(initData, entry, 16) : 0;
}

const rateOf = ({ folder }: InterruptedTrack): Promise<Rate> => rateOfSegment(join(folder, segmentFileName(1)));

/** The frame rate of a whole segment of video. Throws the error of the file system. */
export async function rateOfSegment(path: string): Promise<Rate> {
  const fragments = await scanSegment(path);
  const [duration, samples] = ["duration", "samples"].map((key) =>
    fragments.reduce((sum, fragment) => sum + fragment[key as "duration" | "samples"], 0),
  );
  return frameRateOf(duration as number, samples as number);
}

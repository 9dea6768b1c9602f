import type { LiveSample } from "#src/lib/codecs/samples.ts";
import type { Message } from "./flv-reader.ts";
import { setsOf, unitsOf } from "./nal-units.ts";
import {
  AUDIO_PID,
  AUDIO_STREAM,
  adts,
  byteStream,
  PidWriter,
  PMT_PID,
  pat,
  pes,
  pmt,
  type StreamEntry,
  VIDEO_PID,
  VIDEO_STREAM,
} from "./ts-packets.ts";

/** What a program map lists from a time of the stream on. A track without a PID is not sent. */
export type TsMap = {
  fromMs: number;
  video?: number;
  audio?: number;
  /** Streams of other types, after these. */
  others?: readonly StreamEntry[];
};

/** How transport packets are written, where it differs from what most encoders do. */
export type TsWriting = {
  /** What is added to all times, in ticks of 90 kHz, which wrap at 33 bits. */
  startTicks?: number;
  /** Frames in a PES packet of audio. */
  audioFrames?: number;
  /** Only every so many PES packets of audio have a timestamp (ISO/IEC 13818-1, 2.7.4: one in 700 ms is enough). */
  timedEvery?: number;
  /** A PES packet of audio ends after so many bytes, wherever a frame ends. */
  audioBytes?: number;
  maps?: readonly TsMap[];
  /** PES packets of video have their length. */
  isBounded?: boolean;
  /** Access units begin with a delimiter. */
  hasDelimiters?: boolean;
  /** Parameter sets are in the first keyframe only. */
  hasSetsOnce?: boolean;
  /** Milliseconds between the tables. */
  tablesMs?: number;
  /** Null packets after each PES packet, as at a constant bitrate. */
  nullPackets?: number;
};

const PER_MS = 90;
const WRAP = 2 ** 33;
const VIDEO_TYPE = 0x1b;
const AUDIO_TYPE = 0x0f;
const DELIMITER = "09f0";
const NULL_PACKET = Buffer.concat([Buffer.of(0x47, 0x1f, 0xff, 0x10), Buffer.alloc(184, 0xff)]);

/** A transport stream of H.264 and AAC-LC of 48 kHz, stereo, without a clock reference. */
export function transportStream(messages: readonly Message[], writing: TsWriting = {}): Buffer {
  const writer = new TsWriter(writing);
  for (const { config, sample } of messages)
    if (config?.kind === "video") writer.sets = setsOf(config.configuration);
    else if (sample) writer.add(sample);
  return writer.end();
}

class TsWriter {
  sets: Buffer[] = [];
  readonly #writing: TsWriting;
  readonly #maps: TsMap[];
  readonly #packets: Buffer[] = [];
  readonly #pids = new Map<number, PidWriter>();
  #map: TsMap = { fromMs: 0 };
  #version = -1;
  #tablesAt = Number.NEGATIVE_INFINITY;
  #hasSets = false;
  /** Audio that is not in a PES packet yet: its frames, of which the first may have begun in the one before. */
  #audio: { data: Buffer; ticks: number; frames: number } | null = null;
  #audioPackets = 0;

  constructor(writing: TsWriting) {
    this.#writing = writing;
    this.#maps = [...(writing.maps ?? [{ fromMs: 0, video: VIDEO_PID, audio: AUDIO_PID }])];
  }

  add(sample: LiveSample): void {
    const { timestamp: ms } = sample;
    while (this.#maps[0] && this.#maps[0].fromMs <= ms) {
      this.#endAudio();
      this.#map = this.#maps.shift() as TsMap;
      this.#version++;
      this.#tablesAt = Number.NEGATIVE_INFINITY;
    }
    if (this.#version >= 0 && ms - this.#tablesAt >= (this.#writing.tablesMs ?? 500)) this.#writeTables(ms);
    if (sample.kind === "audio") this.#addAudio(sample);
    else this.#writeVideo(sample);
  }

  end(): Buffer {
    this.#endAudio();
    return Buffer.concat(this.#packets);
  }

  #writeTables(ms: number): void {
    this.#tablesAt = ms;
    const { video, audio, others = [] } = this.#map;
    const streams: StreamEntry[] = [
      ...(video === undefined ? [] : [[VIDEO_TYPE, video] as const]),
      ...(audio === undefined ? [] : [[AUDIO_TYPE, audio] as const]),
      ...others,
    ].map((entry) => [...entry] as StreamEntry);
    this.#write(0, pat());
    this.#write(PMT_PID, pmt(streams, this.#version & 0x1f));
  }

  #writeVideo({ data, isKeyframe, timestamp, compositionOffset }: LiveSample): void {
    const { video } = this.#map;
    if (video === undefined) return;
    const { hasSetsOnce, hasDelimiters, isBounded = false } = this.#writing;
    const sets = isKeyframe && !(hasSetsOnce && this.#hasSets) ? this.sets : [];
    this.#hasSets ||= isKeyframe;
    const payload = byteStream(...(hasDelimiters ? [DELIMITER] : []), ...sets, ...unitsOf(data));
    const dts = this.#ticksOf(timestamp);
    const pts = this.#ticksOf(timestamp + compositionOffset);
    this.#write(video, pes(VIDEO_STREAM, pts, payload, { dts, isBounded }));
  }

  #addAudio({ data, timestamp }: LiveSample): void {
    const { audioFrames = 1, audioBytes } = this.#writing;
    const frame = adts(data);
    if (audioBytes === undefined) {
      this.#audio ??= { data: Buffer.alloc(0), ticks: this.#ticksOf(timestamp), frames: 0 };
      this.#audio.data = Buffer.concat([this.#audio.data, frame]);
      if (++this.#audio.frames >= audioFrames) this.#endAudio();
      return;
    }
    // The timestamp is that of the first frame that begins in the packet (ISO/IEC 13818-1, 2.4.3.7).
    const before = this.#audio?.data ?? Buffer.alloc(0);
    const ticks = this.#audio && this.#audio.frames > 0 ? this.#audio.ticks : this.#ticksOf(timestamp);
    this.#audio = { data: Buffer.concat([before, frame]), ticks, frames: 1 };
    while (this.#audio.data.length > audioBytes) {
      const rest: Buffer = this.#audio.data.subarray(audioBytes);
      this.#audio.data = this.#audio.data.subarray(0, audioBytes);
      this.#endAudio();
      this.#audio = { data: rest, ticks: 0, frames: 0 };
    }
  }

  #endAudio(): void {
    const audio = this.#audio;
    this.#audio = null;
    if (!audio || this.#map.audio === undefined) return;
    const isTimed = audio.frames > 0 && this.#audioPackets++ % (this.#writing.timedEvery ?? 1) === 0;
    this.#write(this.#map.audio, pes(AUDIO_STREAM, isTimed ? audio.ticks : null, audio.data));
  }

  #ticksOf(ms: number): number {
    const ticks = (this.#writing.startTicks ?? PER_MS * 1000) + ms * PER_MS;
    return ((ticks % WRAP) + WRAP) % WRAP;
  }

  #write(pid: number, bytes: Buffer): void {
    const writer = this.#pids.get(pid) ?? new PidWriter(pid);
    this.#pids.set(pid, writer);
    this.#packets.push(writer.write(bytes));
    for (let index = 0; index < (this.#writing.nullPackets ?? 0); index++) this.#packets.push(NULL_PACKET);
  }
}

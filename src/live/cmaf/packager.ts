import { isSameConfig, type LiveSample, type Rate, type TrackConfig } from "#lib/codecs";
import { AudioTrack } from "./audio-track.ts";
import { FrameClock } from "./frame-clock.ts";
import { Recorder } from "./recorder.ts";
import { SegmentPlan, type Targets } from "./segment-plan.ts";
import { Timeline } from "./timeline.ts";
import { type DescribedAudio, type DescribedVideo, describeAudio, describeVideo } from "./tracks.ts";
import type { Health, PackagerOptions, Recording } from "./types.ts";
import { type Cut, VideoTrack } from "./video-track.ts";

const MAX_SAMPLE_BYTES = 16 * 2 ** 20;
/** Five times what AAC allows for eight channels (ISO/IEC 14496-3, 4.5.3.1: 6144 bits each). */
const MAX_PACKET_BYTES = 32 * 1024;
/** A larger one is taken for an error. */
const MAX_COMPOSITION_MS = 10_000;
/** Audio that waits for the first keyframe. */
const MAX_EARLY = { ms: 12_500, packets: 1500 };
/** Audio for this long without a configuration of video has no video. */
const AUDIO_ONLY_MS = 2000;
/** The most reports of each kind: a publisher could cause one with each sample. */
const MAX_REPORTS = 100;
/** Video that is this much behind audio pauses: its last frame is held. Publishers send both within a few tenths. */
const HELD_SECONDS = 1;
/** Audio that is this much longer than video at the end is kept: the last frame lasts. */
const MAX_END_SECONDS = 0.1;
/** Missing audio for longer is not a pause of video alone. */
const MAX_GAP_SECONDS = 3;
/** A pause of video that is reported. */
const LONG_PAUSE_SECONDS = 60;
/** Cuts that are remembered for audio that joins: about an hour. */
const MAX_CUTS = 10_000;
/** Gaps below this are not reported. */
const MIN_GAP_SECONDS = 0.1;

/**
 * Packages the samples of a publisher as CMAF: parts and segments for low-latency HLS, in files that are video on demand
 * unchanged (`readWritten` of src/media/package.ts).
 *
 * Decode times of video begin at 0; the edit list of the init segment removes the first composition offset. Audio is cut
 * where video is cut, at the nearest packet. Video before the first keyframe is dropped.
 */
export type Packager = {
  /**
   * Sets or repeats the configuration of a track, before its samples. A track that the recording does not have joins it, with
   * silence, or its first frame, in the place of what it lacks. "changed": it differs from what the recording has; call `end`, and
   * use another packager. Throws ConfigurationInvalid.
   */
  config(config: TrackConfig): "accepted" | "changed";
  /** Adds a sample, whose data are then the packager's. Samples of a track without a configuration are dropped. */
  sample(sample: LiveSample): void;
  /**
   * Whether neither video nor audio was sent for seconds before this sample, by its timestamp: call `interrupt` and `resume`
   * before it is added. Otherwise the frame before it lasts so long.
   */
  followsPause(sample: LiveSample): boolean;
  /**
   * The connection broke. Ends the open segments; samples are dropped until `resume`. Resolves when all parts and segments
   * before are reported.
   */
  interrupt(): Promise<void>;
  /** The publisher is back. Its first keyframe continues the timeline where it was interrupted, in the next segment. */
  resume(): void;
  /**
   * What follows is reported after `earlier`: each track is written by itself, so one that is quick would be ahead of an interruption
   * that the other one has not come to.
   */
  reportAfter(earlier: Promise<void>): void;
  /** Frame rate of the video; null before its first frame. */
  readonly rate: Rate | null;
  /** What playlists state; null until the first segment is complete. */
  readonly targets: Targets | null;
  /** Bytes that are not written yet. A caller that reads no more while there are many never loses the recording. */
  readonly pendingBytes: number;
  /** Ends the open segments. Resolves when all files are on the disk. */
  end(): Promise<Recording>;
};

export const createPackager = (options: PackagerOptions): Packager => new LivePackager(options);

type State = "waiting" | "running" | "interrupted" | "stopped" | "ended";

class LivePackager implements Packager {
  readonly #options: PackagerOptions;
  readonly #plan: SegmentPlan;
  readonly #recorder: Recorder;
  #state: State = "waiting";
  #timeline = new Timeline();
  #describedVideo: DescribedVideo | null = null;
  #describedAudio: DescribedAudio | null = null;
  #video: VideoTrack | null = null;
  #audio: AudioTrack | null = null;
  #clock: FrameClock | null = null;
  /** The start of the stream on its timeline, and in the recording. */
  #origin = { ms: 0, seconds: 0 };
  #early: { ms: number; data: Buffer }[] = [];
  /** When the first packet of audio arrived that waits for a keyframe. */
  #waitingSince: number | null = null;
  #isSlowReported = false;
  #isPauseReported = false;
  /** Until audio begins; null when there are too many for it to join. */
  #cuts: Cut[] | null = [];
  /** The end of the last long gap in audio, in seconds of the recording. */
  #gapEnd = 0;
  /** The audio has these cuts already. */
  #isJoining = false;
  readonly #reported = new Map<Health["code"], number>();

  constructor(options: PackagerOptions) {
    const { partSeconds = 0.5, targetSegmentSeconds = 4, maxSegmentSeconds = 12 } = options;
    this.#options = options;
    this.#plan = new SegmentPlan({ partSeconds, targetSegmentSeconds, maxSegmentSeconds });
    this.#recorder = new Recorder(options, (error) =>
      this.#report("recording_stopped", `The recording stopped: ${error instanceof Error ? error.message : error}`),
    );
  }

  get rate(): Rate | null {
    return this.#clock?.rate ?? null;
  }

  get targets(): Targets | null {
    const targets = this.#plan.targets;
    const format = this.#audio ? this.#describedAudio?.format : null;
    if (!targets || !format) return targets;
    // Audio is cut at the packets that are nearest to the cuts of video.
    const packet = format.packetSamples / format.sampleRate;
    const partSeconds = Math.ceil(targets.partSeconds / packet - 1e-6) * packet;
    return { partSeconds, segmentSeconds: Math.max(targets.segmentSeconds, Math.ceil(partSeconds)) };
  }

  get pendingBytes(): number {
    return this.#recorder.pendingBytes;
  }

  config(config: TrackConfig): "accepted" | "changed" {
    const current = config.kind === "video" ? this.#describedVideo : this.#describedAudio;
    if (current && isSameConfig(current.config, config)) return "accepted";
    const isFixed = config.kind === "video" ? this.#video : this.#audio || this.#cuts === null;
    if (isFixed) {
      this.#refuse(config);
      return "changed";
    }
    if (config.kind === "video") this.#describedVideo = describeVideo(config, this.#plan.limits);
    else this.#describedAudio = describeAudio(config, this.#plan.limits);
    return "accepted";
  }

  sample(sample: LiveSample): void {
    if (this.#state !== "waiting" && this.#state !== "running") return;
    const { kind, data, timestamp } = sample;
    const described = kind === "video" ? this.#describedVideo : this.#describedAudio;
    if (!described || data.length === 0) return;
    if (data.length > (kind === "video" ? MAX_SAMPLE_BYTES : MAX_PACKET_BYTES)) {
      this.#report("sample_too_large", `A sample of ${data.length} bytes of ${kind} was dropped.`);
      return;
    }
    const { ms, isJump } = this.#timeline.next(kind, timestamp, (lastMs) => this.#expectedMs(kind, lastMs));
    if (isJump) this.#audio?.realign();
    if (isJump) this.#report("timestamp_jump", `The timestamps of ${kind} jumped to ${timestamp}.`);
    if (kind === "video") this.#addVideo(ms, sample);
    else this.#addAudio(ms, data);
    this.#checkLimits();
  }

  followsPause({ kind, timestamp }: LiveSample): boolean {
    if (this.#state !== "running" || kind !== "video" || !this.#video || this.#video.isHeld) return false;
    return this.#timeline.isPause(timestamp);
  }

  interrupt(): Promise<void> {
    if (this.#state === "waiting" || this.#state === "running") {
      this.#flush({ isBroken: true });
      this.#state = "interrupted";
    }
    return this.#recorder.settled();
  }

  resume(): void {
    if (this.#state !== "interrupted") return;
    this.#state = "waiting";
    this.#timeline = new Timeline();
    this.#early = [];
    this.#waitingSince = null;
  }

  reportAfter(earlier: Promise<void>): void {
    this.#recorder.waitFor(earlier);
  }

  async end(): Promise<Recording> {
    this.#flush();
    this.#state = "ended";
    return this.#recorder.finish({
      video: this.#video && this.#clock ? { writer: this.#video.writer, rate: this.#clock.rate } : null,
      audio: this.#audio?.writer ?? null,
    });
  }

  #flush({ isBroken = false } = {}): void {
    // A stream of audio that was shorter than the wait for video.
    const [first] = this.#early;
    if (this.#state === "waiting" && first && !this.#describedVideo) this.#begin(first.ms, 0);
    const lead = this.#video && this.#audio ? this.#audio.seconds - this.#video.seconds : 0;
    const isLate = lead > (isBroken ? HELD_SECONDS : MAX_END_SECONDS);
    this.#video?.flush({ isBroken, until: isLate ? this.#audio?.seconds : 0 });
    this.#audio?.flush();
  }

  #expectedMs(kind: LiveSample["kind"], lastMs: number): number {
    if (kind === "video") return this.#state === "running" && this.#clock ? this.#clock.expectedMs : lastMs;
    const format = this.#describedAudio?.format;
    return lastMs + (format ? (format.packetSamples / format.sampleRate) * 1000 : 0);
  }

  #addVideo(ms: number, sample: LiveSample): void {
    const { isKeyframe, data } = sample;
    const isPossible = Math.abs(sample.compositionOffset) <= MAX_COMPOSITION_MS;
    const compositionOffset = isPossible ? sample.compositionOffset : 0;
    if (this.#state === "waiting") {
      if (!isKeyframe || !this.#describedVideo) return;
      this.#video ??= this.#startVideo(this.#describedVideo, ms, compositionOffset);
      this.#begin(ms + compositionOffset, this.#video.seconds);
    }
    if (!this.#video && this.#audio?.isAlone) return this.#joinVideo(ms, { ...sample, compositionOffset });
    this.#video?.add(ms, { isKeyframe, data, compositionOffset });
    this.#isPauseReported = false;
  }

  /** The first keyframe of video comes after audio: it is shown from the start on. */
  #joinVideo(ms: number, frame: LiveSample): void {
    const audio = this.#audio;
    const described = this.#describedVideo;
    if (!audio || !described || !frame.isKeyframe) return;
    const video = this.#startVideo(described, ms, frame.compositionOffset);
    this.#video = video;
    const seconds = this.#secondsOf(ms + frame.compositionOffset);
    const compositionOffset = this.#clock?.compositionOffset(0, ms, frame.compositionOffset) ?? 0;
    this.#isJoining = true;
    video.begin({ data: frame.data, compositionOffset }, { seconds, ends: audio.ends });
    this.#isJoining = false;
    audio.join();
    video.add(ms, frame, Math.max(seconds, audio.ends.at(-1) ?? 0));
  }

  #secondsOf(ms: number): number {
    return this.#origin.seconds + (ms - this.#origin.ms) / 1000;
  }

  #startVideo(described: DescribedVideo, ms: number, compositionOffset: number): VideoTrack {
    const clock = new FrameClock(described.format.rate);
    clock.start(ms, 0);
    const delay = Math.max(0, clock.compositionOffset(0, ms, compositionOffset));
    this.#clock = clock;
    const writer = this.#recorder.addTrack(described, { delay, startTime: 0 });
    return new VideoTrack(writer, clock, this.#plan, {
      onCut: (cut) => this.#onCut(cut),
      onFrame: (frame) => this.#options.onFrame?.(frame),
    });
  }

  /** `ms` of the stream's timeline is presented at `seconds` of the recording. */
  #begin(ms: number, seconds: number): void {
    this.#state = "running";
    this.#origin = { ms, seconds };
    const early = this.#early;
    this.#early = [];
    this.#waitingSince = null;
    for (const packet of early) this.#addAudio(packet.ms, packet.data);
  }

  #addAudio(ms: number, data: Buffer): void {
    if (this.#state === "waiting") return this.#addEarly(ms, data);
    const described = this.#describedAudio;
    if (this.#state !== "running" || !described) return;
    const seconds = this.#secondsOf(ms);
    if (!this.#audio) {
      if (this.#cuts === null) return this.#refuse(described.config);
      const { sampleRate, packetSamples } = described.format;
      const position = Math.round(seconds * sampleRate);
      // Its end is before the first frame, or no more than the rounding of timestamps after it.
      if (position + packetSamples <= sampleRate / 1000) return;
      this.#audio = this.#startAudio(described, this.#cuts.length > 0 ? 0 : position, data);
    }
    this.#cutAudio(seconds);
    if (seconds - this.#audio.seconds > MAX_GAP_SECONDS) this.#gapEnd = seconds;
    this.#audio.add(seconds, data);
    this.#holdVideo(this.#audio.seconds);
  }

  /** Cuts of before audio began, up to `seconds`: where it has no packets there is silence. */
  #cutAudio(seconds: number): void {
    const cuts = this.#cuts;
    if (!this.#audio || !cuts?.[0]) return;
    const next = cuts.findIndex((cut) => cut.seconds > seconds);
    for (const cut of cuts.splice(0, next === -1 ? cuts.length : next)) this.#audio.cutAt(cut);
  }

  /** Audio has come to `seconds`, so a frame that has not come by now is late. */
  #holdVideo(seconds: number): void {
    if (!this.#video || this.#video.seconds < this.#gapEnd) return;
    const late = seconds - HELD_SECONDS;
    if (late > this.#video.seconds) this.#video.hold(late);
  }

  /** Packets before the first keyframe are needed when they are decoded late, or when there is no video. */
  #addEarly(ms: number, data: Buffer): void {
    this.#waitingSince ??= ms;
    this.#early.push({ ms, data });
    const isOld = () => ms - (this.#early[0]?.ms ?? ms) > MAX_EARLY.ms || this.#early.length > MAX_EARLY.packets;
    while (isOld()) this.#early.shift();
    const waited = ms - this.#waitingSince;
    const isAlone = this.#audio?.isAlone || (!this.#describedVideo && waited >= AUDIO_ONLY_MS);
    if (isAlone) return this.#begin(this.#early[0]?.ms ?? ms, this.#audio?.seconds ?? 0);
    if (waited <= this.#plan.limits.maxSegmentSeconds * 1000) return;
    this.#report("video_missing", "There is audio, but no keyframe. Restart the encoder, or check its video source.");
    this.#begin(this.#early[0]?.ms ?? ms, 0);
  }

  /** `position`: where the first packet belongs, in samples from the start of the recording. */
  #startAudio(described: DescribedAudio, position: number, filler: Buffer): AudioTrack {
    const { format, silence } = described;
    // As many whole packets before it as reach back to the start; the edit list removes what is before the start.
    const before = silence ? Math.ceil(position / format.packetSamples) * format.packetSamples : 0;
    const start = Math.max(0, position > 0 ? before - position : -position);
    const writer = this.#recorder.addTrack(described, { delay: start, startTime: start });
    const onGap = (seconds: number) => {
      if (Math.abs(seconds) < MIN_GAP_SECONDS) return;
      const change = seconds > 0 ? "were missing and replaced by silence" : "overlapped and were dropped";
      this.#report("audio_gap", `${Math.abs(seconds).toFixed(2)} s of audio ${change}.`);
    };
    const isAlone = this.#video === null;
    return new AudioTrack({ writer, format, silence, start, isAlone, plan: this.#plan, filler, onGap });
  }

  #onCut(cut: Cut): void {
    if (cut.isSegmentEnd) this.#options.onSegmentEnd?.(cut.seconds);
    if (this.#isJoining) return;
    const described = this.#describedAudio;
    // Its first packet is late: silence until it arrives.
    if (!this.#audio && described?.silence) this.#audio = this.#startAudio(described, 0, described.silence);
    if (this.#audio) {
      this.#cutAudio(cut.seconds);
      return this.#audio.cutAt(cut);
    }
    if (this.#cuts && this.#cuts.length >= MAX_CUTS) this.#cuts = null;
    this.#cuts?.push(cut);
  }

  #checkLimits(): void {
    const { maxSegmentSeconds, targetSegmentSeconds, partSeconds } = this.#plan.limits;
    const seconds = this.#video?.segmentSeconds ?? 0;
    if (seconds > targetSegmentSeconds + partSeconds && !this.#isSlowReported) {
      this.#isSlowReported = true;
      this.#report(
        "keyframe_interval",
        `Segments are longer than ${targetSegmentSeconds} s, which adds latency. Set a keyframe interval of 2 s.`,
      );
    }
    if (
      !this.#plan.targets &&
      seconds > maxSegmentSeconds &&
      !this.#plan.isTooLong(seconds, this.#video?.segmentFrames ?? 0)
    )
      this.#fail(
        "keyframe_interval_exceeded",
        `No keyframe in ${maxSegmentSeconds} s. Set a keyframe interval of 2 s.`,
      );
    const lead = this.#video && this.#audio ? this.#audio.seconds - this.#video.seconds : 0;
    if (lead > LONG_PAUSE_SECONDS || (this.#video?.heldSeconds ?? 0) > LONG_PAUSE_SECONDS) this.#reportPause();
    const exceeded = this.#recorder.exceededLimit();
    if (exceeded) this.#fail(exceeded.code, exceeded.message);
  }

  #reportPause(): void {
    if (this.#isPauseReported) return;
    this.#isPauseReported = true;
    this.#report(
      "video_missing",
      `No video in ${LONG_PAUSE_SECONDS} s. The last frame stays; check the video source of the encoder.`,
    );
  }

  #refuse(config: TrackConfig): void {
    if (this.#state === "stopped" || this.#state === "ended") return;
    this.#flush();
    this.#state = "stopped";
    this.#options.onConfigChanged?.(config);
  }

  #fail(code: Health["code"], message: string): void {
    if (this.#state === "stopped") return;
    this.#flush();
    this.#state = "stopped";
    this.#options.onHealth?.({ code, message, isFatal: true });
  }

  #report(code: Health["code"], message: string): void {
    const times = (this.#reported.get(code) ?? 0) + 1;
    this.#reported.set(code, times);
    if (times > MAX_REPORTS) return;
    this.#options.onHealth?.({ code, message, isFatal: false });
  }
}

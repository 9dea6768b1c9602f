import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { Rate } from "#lib/codecs";
import { segmentFileName } from "#media/arguments.ts";
import { readSegment } from "#media/package.ts";
import { MAX_DURATION_SECONDS } from "#media/plan.ts";
import { TrackWriter } from "./track-writer.ts";
import type { DescribedAudio, DescribedVideo } from "./tracks.ts";
import type { Health, PackagerOptions, RecordedTrack, Recording } from "./types.ts";

/** What one stream may have in memory: 13 s of 40 Mbit/s. */
const MAX_PENDING_BYTES = 64 * 2 ** 20;

type Finished = { video: { writer: TrackWriter; rate: Rate } | null; audio: TrackWriter | null };

/** Writes the tracks of a recording to its folder. When one of them cannot be stored, none is any more. */
export class Recorder {
  readonly #options: PackagerOptions;
  readonly #onStopped: (error: unknown) => void;
  readonly #writers: TrackWriter[] = [];
  /** The deletion of what is not complete; null while it records. */
  #stopped: Promise<unknown> | null = null;
  /** What a track that begins waits for. */
  #earlier: Promise<void> | null = null;

  /** `onStopped`: with the error of the first write that failed. */
  constructor(options: PackagerOptions, onStopped: (error: unknown) => void) {
    this.#options = options;
    this.#onStopped = onStopped;
  }

  get pendingBytes(): number {
    return this.#writers.reduce((sum, { pendingBytes }) => sum + pendingBytes, 0);
  }

  addTrack(
    { info, timescale, init }: DescribedVideo | DescribedAudio,
    { delay, startTime }: { delay: number; startTime: number },
  ): TrackWriter {
    const { folder } = this.#options;
    const written = { info, folder, init: init(delay), timescale, startTime, callbacks: this.#options };
    const writer = new TrackWriter({ ...written, onFailure: (error) => this.#stop(error) });
    if (this.#earlier) writer.waitFor(this.#earlier);
    if (this.#stopped) this.#stopped = Promise.all([this.#stopped, writer.stopStoring()]);
    this.#writers.push(writer);
    return writer;
  }

  /** The fatal fault of what was added so far, if there is one. */
  exceededLimit(): Pick<Health, "code" | "message"> | null {
    if (this.pendingBytes > MAX_PENDING_BYTES)
      return { code: "disk_too_slow", message: "The disk is slower than the stream." };
    if (this.#writers.some(({ isFull }) => isFull))
      return { code: "segment_too_large", message: "A segment has too many bytes or frames." };
    if (this.#writers.some(({ seconds }) => seconds > MAX_DURATION_SECONDS))
      return { code: "duration_exceeded", message: `The recording lasts ${MAX_DURATION_SECONDS / 3600} hours.` };
    return null;
  }

  /** What follows, of any track, is reported after `earlier`, which has to depend on nothing that follows. */
  waitFor(earlier: Promise<void>): void {
    this.#earlier = earlier;
    for (const writer of this.#writers) writer.waitFor(earlier);
  }

  /** Resolves when all calls before are done. */
  async settled(): Promise<void> {
    await Promise.all(this.#writers.map((writer) => writer.settled()));
  }

  /** Waits for all writes. Where the recording stopped, deletes the segments that only one track has. */
  async finish({ video, audio }: Finished): Promise<Recording> {
    await this.settled();
    // A write of one track that failed last stops the other one, whose writes may have been done.
    await this.#stopped;
    const common = Math.min(...this.#writers.map(({ stored }) => stored.segments));
    const result = async (writer: TrackWriter | undefined | null) => (writer ? this.#recorded(writer, common) : null);
    const recordedVideo = await result(video?.writer);
    const recordedAudio = await result(audio);
    return {
      video: recordedVideo && video ? { ...recordedVideo, rate: video.rate } : null,
      audio: recordedAudio,
      durationSeconds: (recordedVideo ?? recordedAudio)?.durationSeconds ?? 0,
    };
  }

  async #recorded({ info, stored, timescale }: TrackWriter, segments: number): Promise<RecordedTrack | null> {
    const { kind, name, channels } = info;
    let { bytes, duration } = stored;
    for (let number = segments + 1; number <= stored.segments; number++) {
      const folder = join(this.#options.folder, name);
      const dropped = await readSegment(folder, segmentFileName(number), { areOurs: true });
      await rm(join(folder, segmentFileName(number)));
      bytes -= dropped.bytes;
      duration -= dropped.duration;
    }
    if (segments === 0) return null;
    return { kind, name, segments, bytes, durationSeconds: duration / timescale, channels };
  }

  #stop(error: unknown): void {
    if (this.#stopped) return;
    this.#stopped = Promise.all(this.#writers.map((writer) => writer.stopStoring()));
    this.#onStopped(error);
  }
}

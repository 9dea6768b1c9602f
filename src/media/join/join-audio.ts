import { audioCodecs } from "#lib/codecs";
import { readInit } from "#lib/isobmff";
import { readSamples, type Sample, writeSegment } from "../clip/fragments.ts";
import type { Segment, Written } from "../package.ts";
import { SHORT_SECONDS } from "../package.ts";
import { segmentName } from "../parallel/written-rows.ts";
import { JoinImpossible } from "./faults.ts";
import { type Position, rowOf, secondsOf, type WriteFile } from "./join-video.ts";
import { legible, type Part, type PartRendition } from "./read-part.ts";

/** Silence may last as long as a part; a segment of it is written at this length. */
export const SILENCE_SECONDS = 4;

type Silence = { data: Buffer; samples: number };

/** A silent packet for a track, or null for a codec or layout of which none is known. */
function silenceOf(codecString: string, channels: number): Silence | null {
  for (const { silentPacket, packetSamples } of Object.values(audioCodecs)) {
    const data = silentPacket(codecString, channels);
    if (data) return { data, samples: packetSamples };
  }
  return null;
}

/**
 * One track of audio. Packets follow each other without gaps and overlaps, which break MSE: at each join, and wherever a
 * part has a gap, the packet is taken whose time is nearest to the end of the one before. The error is at most half a
 * packet, and does not add up: times are always those of the part. Missing audio is filled with silence.
 */
export class AudioJoiner {
  readonly #name: string;
  readonly #init: ReturnType<typeof readInit>;
  readonly #silence: Silence | null;
  readonly #write: WriteFile;
  readonly #trackId: number;
  readonly #rows: Segment[] = [];
  /** Where the next packet begins. */
  #cursor = 0;
  #packet: number;
  /** Flags of the packets of the track. */
  #flags = 0;
  #pending: Sample[] = [];
  /** A complete segment, until it is clear that what follows is long enough for one of its own. */
  #held: Sample[] = [];

  constructor(
    { name, bytes, channels, defaults }: Pick<PartRendition, "name" | "bytes" | "channels" | "defaults">,
    write: WriteFile,
  ) {
    this.#name = name;
    this.#init = readInit(bytes);
    this.#silence = silenceOf(this.#init.codec, channels);
    this.#packet = this.#silence?.samples ?? 0;
    this.#trackId = defaults.trackId;
    this.#write = write;
  }

  /** Appends the audio of a part that begins at `from` and ends at `to`; `start`: of the media of the part, in seconds. */
  async add(
    { read }: Pick<Part, "read">,
    { segments, defaults }: Pick<PartRendition, "segments" | "defaults">,
    { from, to, start, isLast }: { from: Position; to: Position; start: number; isLast: boolean },
  ): Promise<void> {
    const { timescale, delay } = this.#init;
    const shift = Math.round((secondsOf(from) - start) * timescale);
    const end = Math.round(secondsOf(to) * timescale) + delay;
    for (const path of segments) {
      const data = await read(path);
      for (const sample of legible(() => readSamples(data, defaults))) {
        if (sample.duration <= 0) throw new JoinImpossible("a packet of audio has no duration");
        const half = sample.duration / 2;
        const wanted = sample.dts + shift;
        // The priming of a later part, or packets of a clip before its first frame.
        if (wanted < this.#cursor - half) continue;
        // Times are not those of the part where a segment is damaged: silence is not to follow them.
        if (wanted >= end || (!isLast && this.#cursor >= end - half)) break;
        const duration = isLast ? sample.duration : this.#decodedDuration(sample);
        this.#packet = duration;
        this.#flags = sample.flags;
        await this.#fill(wanted - half);
        if (wanted > this.#cursor + half) await this.#skipTo(wanted);
        this.#append({ ...sample, duration, dts: this.#cursor, cts: this.#cursor + sample.cts - sample.dts });
      }
      await this.#close();
    }
    if (isLast) return;
    await this.#fill(end - this.#packet / 2);
    await this.#close();
  }

  /** Appends silence up to `to`. Throws JoinImpossible for a codec of which none is known. */
  async addSilence(to: Position): Promise<void> {
    if (this.#silence === null) throw new JoinImpossible("silence is not known for the codec of an audio track");
    this.#packet = this.#silence.samples;
    await this.#fill(Math.round(secondsOf(to) * this.#init.timescale) + this.#init.delay - this.#packet / 2);
    await this.#close();
  }

  /** The last packet of a track may state that only its beginning is presented, but all of it is decoded. */
  #decodedDuration({ duration }: Sample): number {
    return this.#silence && duration < this.#silence.samples ? this.#silence.samples : duration;
  }

  #append(sample: Sample): void {
    this.#pending.push(sample);
    this.#cursor += sample.duration;
  }

  /** Silence until the cursor is at `until` or after. */
  async #fill(until: number): Promise<void> {
    if (this.#silence === null || this.#packet !== this.#silence.samples) return;
    const { data, samples } = this.#silence;
    while (this.#cursor < until) {
      const times = { dts: this.#cursor, cts: this.#cursor, duration: samples };
      this.#append({ data, flags: this.#flags, ...times });
      if (this.#pending.length * samples >= SILENCE_SECONDS * this.#init.timescale) await this.#close();
    }
  }

  /** Without a silent packet there is a gap, before which a segment ends. */
  async #skipTo(time: number): Promise<void> {
    await this.#close();
    await this.#flush();
    this.#cursor = time;
  }

  /** Ends a segment; one that is short becomes the end of the one before. */
  async #close(): Promise<void> {
    const length = this.#pending.reduce((sum, { duration }) => sum + duration, 0);
    const isShort = length <= SHORT_SECONDS * this.#init.timescale;
    if (!isShort) await this.#flush();
    this.#held.push(...this.#pending);
    this.#pending = [];
  }

  async #flush(): Promise<void> {
    const [first] = this.#held;
    if (!first) return;
    const name = segmentName(this.#rows.length);
    const { timescale } = this.#init;
    const options = { trackId: this.#trackId, timescale, sequence: this.#rows.length + 1, start: first.cts };
    const data = writeSegment(this.#held, options);
    this.#held = [];
    const row = rowOf(name, data);
    const before = this.#rows.at(-1);
    // Times in playlists are sums of durations: one before a gap includes it.
    if (before && before.start + before.duration < row.start) {
      before.duration = row.start - before.start;
      before.durationSeconds = before.duration / timescale;
    }
    this.#rows.push(row);
    await this.#write(this.#name, name, data);
  }

  /** Writes what is left. */
  async finish(): Promise<Written> {
    await this.#close();
    await this.#flush();
    if (this.#rows.length === 0) throw new JoinImpossible("an audio track has no packets");
    const durationSeconds = this.#rows.reduce((sum, one) => sum + one.durationSeconds, 0);
    return { name: this.#name, init: this.#init, segments: this.#rows, durationSeconds };
  }
}

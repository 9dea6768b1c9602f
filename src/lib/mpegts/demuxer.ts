import { RejectedMedia } from "#lib/publishing";
import { Continuity } from "./continuity.ts";
import { PesReader } from "./pes-reader.ts";
import { SectionReader } from "./section-reader.ts";
import { selectStreams } from "./stream-types.ts";
import { readProgram, readStreams } from "./tables.ts";
import { ProgramClock } from "./timestamps.ts";
import { audioTrackReader, type TrackOutput, type TrackReader, VideoTrackReader } from "./track-readers.ts";

export type DemuxerLimits = {
  /** Bytes of transport packets that one access unit of video may use. */
  videoBytes: number;
  /** Bytes of transport packets that one PES packet of audio may use. */
  audioBytes: number;
  /** Bytes without a transport packet after which the stream is rejected. */
  garbageBytes: number;
};

export type DemuxerOptions = TrackOutput & {
  limits: DemuxerLimits;
  /** Called with the tracks that a program map announces, and the kinds of which it has more than one; may be repeated. */
  onTracks?: (kinds: ("video" | "audio")[], ignored: readonly ("video" | "audio")[]) => void;
};

const PACKET_BYTES = 188;
const SYNC = 0x47;
const PAT_PID = 0;
/** PIDs below are reserved, and the last one is of null packets. */
const FIRST_PID = 0x10;
const NULL_PID = 0x1fff;

type Payload = { isStart: boolean; isLost: boolean };
/** What reads the payload of a PID. */
type Reader = { push(payload: Buffer, state: Payload): void };
type Filter = { continuity: Continuity; reader: Reader };
type Track = { pid: number; codec: string; pes: PesReader };

/**
 * Reads an MPEG transport stream (ISO/IEC 13818-1): the first video and the first audio of its first program. What was
 * lost on the way is skipped. Methods throw RejectedMedia for a stream that cannot be packaged, and what the callbacks throw.
 */
export class TsDemuxer {
  readonly #options: DemuxerOptions;
  readonly #clock = new ProgramClock();
  /** The start of a packet that ends in the next call. */
  #rest: Buffer = Buffer.alloc(0);
  #garbageBytes = 0;
  readonly #filters = new Map<number, Filter>();
  #program: { number: number; mapPid: number } | null = null;
  readonly #tracks: { video: Track | null; audio: Track | null } = { video: null, audio: null };

  constructor(options: DemuxerOptions) {
    this.#options = options;
    this.#read(PAT_PID, new SectionReader((section) => this.#onProgram(section)));
  }

  /** Adds bytes of the stream, which may be cut anywhere, and become the demuxer's. */
  push(bytes: Buffer): void {
    const data = this.#rest.length > 0 ? Buffer.concat([this.#rest, bytes]) : bytes;
    let at = 0;
    while (at + PACKET_BYTES <= data.length) {
      if (data[at] === SYNC) {
        this.#garbageBytes = 0;
        this.#packet(data, at);
        at += PACKET_BYTES;
      } else at = this.#skipGarbage(data, at);
    }
    this.#rest = data.subarray(at);
  }

  /** The stream is complete: passes on its last samples. */
  end(): void {
    for (const track of [this.#tracks.video, this.#tracks.audio]) track?.pes.flush();
  }

  #skipGarbage(data: Buffer, start: number): number {
    const next = data.indexOf(SYNC, start);
    const end = next === -1 ? data.length : next;
    this.#garbageBytes += end - start;
    if (this.#garbageBytes > this.#options.limits.garbageBytes)
      throw new RejectedMedia("The stream is not MPEG-TS. Select the format mpegts in the encoder.");
    return end;
  }

  #packet(data: Buffer, at: number): void {
    const second = data[at + 1] as number;
    const pid = ((second & 0x1f) << 8) | (data[at + 2] as number);
    const filter = this.#filters.get(pid);
    // With transport_error_indicator the PID may be wrong too.
    if (!filter || second & 0x80) return;
    const fourth = data[at + 3] as number;
    let start = at + 4;
    let isDiscontinuous = false;
    if (fourth & 0x20) {
      const length = data[start] as number;
      isDiscontinuous = length > 0 && ((data[start + 1] as number) & 0x80) !== 0;
      start += 1 + length;
    }
    if (!(fourth & 0x10) || start >= at + PACKET_BYTES) return;
    if (fourth & 0xc0) throw new RejectedMedia("The stream is scrambled. Disable conditional access in the encoder.");
    const order = filter.continuity.next(fourth & 0x0f, isDiscontinuous);
    if (order === "repeated") return;
    const payload = data.subarray(start, at + PACKET_BYTES);
    filter.reader.push(payload, { isStart: (second & 0x40) !== 0, isLost: order === "lost" });
  }

  #read(pid: number, reader: Reader): void {
    this.#filters.set(pid, { continuity: new Continuity(), reader });
  }

  #onProgram(section: Buffer): void {
    const program = readProgram(section);
    if (program === null || !isUsable(program.mapPid)) return;
    if (program.number === this.#program?.number && program.mapPid === this.#program.mapPid) return;
    if (this.#program) this.#filters.delete(this.#program.mapPid);
    this.#program = program;
    this.#removeTrack("video");
    this.#removeTrack("audio");
    this.#read(program.mapPid, new SectionReader((map) => this.#onMap(map, program.number)));
  }

  #onMap(section: Buffer, program: number): void {
    const streams = readStreams(section, program)?.filter(({ pid }) => isUsable(pid) && pid !== this.#program?.mapPid);
    if (!streams) return;
    const { video, audio, ignored } = selectStreams(streams);
    const { limits, ...output } = this.#options;
    this.#setTrack("video", video, ({ codec }) =>
      this.#pesReader(new VideoTrackReader(codec, this.#clock, output), { maxBytes: limits.videoBytes, isVideo: true }),
    );
    const isShared = audio?.pid === video?.pid;
    const announced = [video && ("video" as const), !isShared && audio ? ("audio" as const) : null];
    this.#options.onTracks?.(
      announced.filter((kind) => kind !== null),
      ignored,
    );
    this.#setTrack("audio", isShared ? null : audio, (selected) =>
      this.#pesReader(audioTrackReader(selected, this.#clock, output), {
        maxBytes: limits.audioBytes,
        isVideo: false,
      }),
    );
  }

  #pesReader(track: TrackReader, options: { maxBytes: number; isVideo: boolean }): PesReader {
    return new PesReader({ onPacket: (packet) => track.read(packet), onDamage: () => track.reset(), ...options });
  }

  /** Null: there is none. A track that is the same as before continues. */
  #setTrack<S extends { pid: number; codec: string }>(
    kind: "video" | "audio",
    selected: S | null,
    open: (selected: S) => PesReader,
  ): void {
    const current = this.#tracks[kind];
    if (current && selected && current.pid === selected.pid && current.codec === selected.codec) return;
    this.#removeTrack(kind);
    if (selected === null) return;
    const pes = open(selected);
    this.#tracks[kind] = { pid: selected.pid, codec: selected.codec, pes };
    this.#read(selected.pid, pes);
  }

  #removeTrack(kind: "video" | "audio"): void {
    const track = this.#tracks[kind];
    if (track) this.#filters.delete(track.pid);
    this.#tracks[kind] = null;
  }
}

const isUsable = (pid: number) => pid >= FIRST_PID && pid < NULL_PID;

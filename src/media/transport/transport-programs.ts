import { mapSection, type Program, programSection, readPrograms, readStreams, SectionReader } from "#lib/mpegts";
import type { Jumps } from "../timeline/packet-lines.ts";
import { type ProgramTrack, ProgramTracks, type Route } from "./program-tracks.ts";
import { TransportClock } from "./transport-clock.ts";

export const PACKET_BYTES = 188;
const SYNC = 0x47;
const PAT_PID = 0;
const NULL_PID = 0x1fff;
const PIDS = 0x2000;

/** More are not followed. */
const MAX_PROGRAMS = 64;

type Followed = Program & { tracks: ProgramTracks; clock: TransportClock };
/** Where the packets of a PID go: to another PID, with another continuity counter. */
type Target = { pid: number; counterOffset: number; track: ProgramTrack };

/**
 * Follows the programs of a transport stream through all versions of their tables, and assigns to each track one PID for the
 * whole stream, and times that do not jump. Packets are changed in place.
 */
export class TransportPrograms {
  /** In the order in which they appeared. */
  readonly programs: Followed[] = [];
  readonly #used = new Set<number>([PAT_PID, NULL_PID]);
  readonly #readers = new Map<number, SectionReader>();
  readonly #targets: (Target | undefined)[] = Array(PIDS);
  /** The PID that leads to each; -1: none. */
  readonly #sources = new Int16Array(PIDS).fill(-1);
  /** Routes that take effect with the next PES packet of a PID. */
  readonly #pending: (Route | undefined)[] = Array(PIDS);
  readonly #counters = new Int8Array(PIDS).fill(-1);
  /** Number and PID of each map that is read. */
  readonly #maps = new Set<string>();
  readonly #mapReaders = new Map<number, ((section: Buffer) => void)[]>();
  #associations: Buffer = Buffer.alloc(0);
  readonly #clocks = new Map<ProgramTrack, TransportClock>();
  #isMoved = false;

  /** Where PIDs lead before the first tables: as in those. */
  readonly firstRoutes: Route[] = [];

  /** `routes`: `firstRoutes` of the same stream. */
  constructor(routes: readonly Route[] = []) {
    for (const route of routes) this.#pending[route.from] = route;
    this.#readers.set(PAT_PID, new SectionReader((section) => this.#onPrograms(section)));
  }

  /** Whether a reader that knows the first tables alone would lose something. */
  get isChanged(): boolean {
    return this.#isMoved || this.programs.some(({ tracks }) => tracks.isChanged);
  }

  /** Whether all tracks of each program fit into one section, which television never exceeds. */
  get fits(): boolean {
    try {
      return this.tables().length > 0;
    } catch (error) {
      if (error instanceof RangeError) return false;
      throw error;
    }
  }

  /** Where the times of the programs jumped; null where they did not. */
  get jumps(): Jumps | null {
    const [first] = this.programs.map(({ clock }) => clock).filter(({ count }) => count > 0);
    return first ? { count: first.count, firstSeconds: first.firstSeconds, shifts: [] } : null;
  }

  /** Packets with all tracks that appeared. Throws RangeError when there are too many. */
  tables(): Buffer {
    const programs = this.programs.filter(({ tracks }) => tracks.tracks.length > 0);
    return Buffer.concat([
      packetsWith(PAT_PID, programSection(programs)),
      ...programs.map(({ number, mapPid, tracks: { tracks } }) =>
        packetsWith(mapPid, mapSection(number, tracks[0]?.pid ?? NULL_PID, tracks)),
      ),
    ]);
  }

  /** Takes the packet at a position, which becomes one of its track. False: it is of none. */
  packet(data: Buffer, at: number): boolean {
    const second = data[at + 1] as number;
    const pid = ((second & 0x1f) << 8) | (data[at + 2] as number);
    const isStart = (second & 0x40) !== 0;
    // With transport_error_indicator the PID may be wrong too.
    const reader = second & 0x80 ? undefined : this.#readers.get(pid);
    if (reader) {
      const start = payloadAt(data, at);
      if (start < at + PACKET_BYTES) reader.push(data.subarray(start, at + PACKET_BYTES), { isStart, isLost: false });
    } else if (isStart && this.#pending[pid]) this.#start(pid, data[at + 3] as number);
    const target = reader ? undefined : this.#targets[pid];
    if (!target) return false;
    if (isStart) this.#clocks.get(target.track)?.correct(data, payloadAt(data, at), at + PACKET_BYTES, target.track);
    writePid(data, at, target.pid);
    const fourth = data[at + 3] as number;
    const counter = (fourth + target.counterOffset) & 0x0f;
    data[at + 3] = (fourth & 0xf0) | counter;
    this.#counters[target.pid] = counter;
    return true;
  }

  #start(pid: number, fourth: number): void {
    const { track } = this.#pending[pid] as Route;
    this.#pending[pid] = undefined;
    // What carried the track until now ends.
    const former = this.#sources[track.pid] as number;
    if (former >= 0 && this.#targets[former]?.pid === track.pid) this.#targets[former] = undefined;
    this.#sources[track.pid] = pid;
    const before = this.#counters[track.pid] as number;
    const counterOffset = before < 0 ? 0 : (before + 1 - fourth) & 0x0f;
    this.#targets[pid] = { pid: track.pid, counterOffset, track };
  }

  #onPrograms(section: Buffer): void {
    const programs = readPrograms(section);
    if (!programs || programs.length === 0 || section.equals(this.#associations)) return;
    this.#associations = Buffer.from(section);
    const [first] = this.programs;
    const isOnlyOne = programs.length === 1 && this.programs.length === 1;
    for (const { number, mapPid } of programs) {
      const known = isOnlyOne ? first : this.programs.find((one) => one.number === number);
      if (!known && this.programs.length >= MAX_PROGRAMS) continue;
      if (!known) {
        this.#isMoved ||= this.programs.some(({ tracks }) => tracks.tracks.length > 0);
        this.programs.push({ number, mapPid, tracks: new ProgramTracks(this.#used), clock: new TransportClock() });
        this.#used.add(mapPid);
      }
      const followed = known ?? (this.programs.at(-1) as Followed);
      this.#isMoved ||= known !== undefined && known.number !== number;
      this.#used.add(mapPid);
      const key = `${number} ${mapPid}`;
      if (this.#maps.has(key) || this.#maps.size >= MAX_PROGRAMS) continue;
      this.#maps.add(key);
      this.#readMap(mapPid, number, followed);
    }
  }
  /** One PID may carry the maps of several programs. */
  #readMap(mapPid: number, number: number, { tracks, clock }: Followed): void {
    const readers = this.#mapReaders.get(mapPid) ?? [];
    this.#mapReaders.set(mapPid, readers);
    let last: Buffer = Buffer.alloc(0);
    readers.push((section) => {
      if (section.equals(last)) return;
      const streams = readStreams(section, number)?.filter(({ pid }) => pid !== PAT_PID && pid < NULL_PID);
      if (!streams) return;
      last = Buffer.from(section);
      const isFirst = tracks.tracks.length === 0;
      for (const route of tracks.read(streams)) {
        this.#pending[route.from] = route;
        this.#clocks.set(route.track, clock);
        if (isFirst) this.firstRoutes.push(route);
      }
    });
    if (readers.length === 1)
      this.#readers.set(
        mapPid,
        new SectionReader((section) => {
          for (const read of readers) read(section);
        }),
      );
  }
}

function payloadAt(data: Buffer, at: number): number {
  const control = data[at + 3] as number;
  if (!(control & 0x10)) return at + PACKET_BYTES;
  return at + 4 + (control & 0x20 ? 1 + (data[at + 4] as number) : 0);
}

function writePid(data: Buffer, at: number, pid: number): void {
  data[at + 1] = ((data[at + 1] as number) & 0xe0) | (pid >> 8);
  data[at + 2] = pid & 0xff;
}

const PAYLOAD_BYTES = PACKET_BYTES - 4;

/** The packets of a section, filled up. */
function packetsWith(pid: number, section: Buffer): Buffer {
  const payload = Buffer.concat([Buffer.of(0), section]);
  const count = Math.ceil(payload.length / PAYLOAD_BYTES);
  const packets = Buffer.alloc(count * PACKET_BYTES, 0xff);
  for (let index = 0; index < count; index++) {
    const at = index * PACKET_BYTES;
    packets.set([SYNC, (index === 0 ? 0x40 : 0) | (pid >> 8), pid & 0xff, 0x10 | (index & 0x0f)], at);
    payload.copy(packets, at + 4, index * PAYLOAD_BYTES, (index + 1) * PAYLOAD_BYTES);
  }
  return packets;
}

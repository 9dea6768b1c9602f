import type { FlvReader } from "./flv-reader.ts";

/** AvMultitrackType of Enhanced RTMP 2. */
const MULTITRACK = { one: 0, manyCodecs: 2 } as const;
/** The track of what is not sent as multitrack. */
const DEFAULT_TRACK = 0;

/** Chooses one of the tracks of a kind: the first one that arrives. */
export class TrackChoice {
  readonly #onIgnored: () => void;
  #chosen: number | null = null;

  /** `onIgnored` is called for each message of another track. */
  constructor(onIgnored: () => void) {
    this.#onIgnored = onIgnored;
  }

  accepts(trackId: number = DEFAULT_TRACK): boolean {
    this.#chosen ??= trackId;
    if (this.#chosen === trackId) return true;
    this.#onIgnored();
    return false;
  }
}

export type ChosenTrack = { packetType: number; fourCc: string; body: Buffer };

/**
 * Reads the body of a multitrack message (Enhanced RTMP 2, ExVideoTagBody and ExAudioTagBody): the part of the chosen track, null
 * when it has none. `reader` is after the packet type. Throws RtmpFault when it is truncated.
 */
export function readMultitrack(reader: FlvReader, choice: TrackChoice): ChosenTrack | null {
  const first = reader.byte();
  const type = first >> 4;
  const packetType = first & 0x0f;
  const common = type === MULTITRACK.manyCodecs ? null : reader.fourCc();
  let chosen: ChosenTrack | null = null;
  while (!reader.isEnd) {
    const fourCc = common ?? reader.fourCc();
    const trackId = reader.byte();
    const body = type === MULTITRACK.one ? reader.bytes(reader.rest().length) : reader.bytes(reader.uint24());
    if (choice.accepts(trackId)) chosen = { packetType, fourCc, body };
  }
  return chosen;
}

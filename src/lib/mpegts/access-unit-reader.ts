import { RejectedMedia } from "#lib/publishing";
import { joinNalUnits, splitNalUnits } from "./annex-b.ts";

/** Level 6.2 of H.264 and HEVC allows 600 slices; each may have a message of its own. */
const MAX_UNITS = 2000;
/** SPS of H.264 (ISO/IEC 14496-15, 5.3.3.1.2): a number of 5 bits. */
const MAX_SETS = 31;
const MAX_SET_BYTES = 16 * 1024;

/** What differs between H.264 and HEVC. Types are nal_unit_type. */
export type VideoSyntax = {
  /** The length of a NAL unit's header. */
  headerBytes: number;
  typeOf(unit: Buffer): number;
  /** Types of parameter sets, in the order of `configuration`. */
  setTypes: readonly number[];
  /** Delimiters, filler data and ends of sequences: they mean nothing in a file. */
  isDropped(type: number): boolean;
  isFrame(type: number): boolean;
  isRandomAccess(type: number): boolean;
  /** Content of avcC or hvcC; each list has at least one set. Throws Error when one is malformed. */
  configuration(sets: Buffer[][]): Buffer;
};

export type AccessUnit = {
  isKeyframe: boolean;
  /** NAL units with their lengths in 4 bytes. */
  data: Buffer;
  /** Present when it begins with other parameter sets than the last keyframe. */
  configuration: Buffer | null;
};

/**
 * Reads access units as a byte stream, and collects the parameter sets. Those of a keyframe are removed from it: they are
 * in the configuration.
 */
export class AccessUnitReader {
  readonly #syntax: VideoSyntax;
  /** The parameter sets of the configuration, by type. */
  #sets: Buffer[][];
  /** Since the last frame, by type. */
  #pending: Buffer[][];
  #isConfigured = false;

  constructor(syntax: VideoSyntax) {
    this.#syntax = syntax;
    this.#sets = syntax.setTypes.map(() => []);
    this.#pending = syntax.setTypes.map(() => []);
  }

  /** The parameter sets of the last configuration. */
  get sets(): readonly Buffer[] {
    return this.#sets.flat();
  }

  /** Null when it has no coded frame. Throws RejectedMedia when parameter sets are malformed. */
  read(data: Buffer): AccessUnit | null {
    const units = splitNalUnits(data, MAX_UNITS);
    if (units === null) throw new RejectedMedia(`A frame has more than ${MAX_UNITS} NAL units. Use fewer slices.`);
    return this.readUnits(units);
  }

  /** The same of NAL units without start codes. */
  readUnits(units: readonly Buffer[]): AccessUnit | null {
    const { typeOf, headerBytes, setTypes, isDropped, isFrame, isRandomAccess } = this.#syntax;
    const kept: { unit: Buffer; isSet: boolean }[] = [];
    let hasFrame = false;
    let isKeyframe = false;
    for (const unit of units) {
      const type = typeOf(unit);
      if (unit.length <= headerBytes || isDropped(type)) continue;
      const list = setTypes.indexOf(type);
      if (list !== -1) this.#addSet(list, unit);
      hasFrame ||= isFrame(type);
      isKeyframe ||= isRandomAccess(type);
      kept.push({ unit, isSet: list !== -1 });
    }
    if (!hasFrame) return null;
    const configuration = isKeyframe ? this.#configure() : null;
    // Between keyframes they stay where they are, unless they repeat the configuration.
    const isRepeated = (unit: Buffer) => this.#sets.some((sets) => sets.some((set) => set.equals(unit)));
    this.#pending = setTypes.map(() => []);
    const remaining = kept.filter(({ unit, isSet }) => !isSet || !(isKeyframe || isRepeated(unit)));
    return { isKeyframe, data: joinNalUnits(remaining.map(({ unit }) => unit)), configuration };
  }

  #addSet(list: number, unit: Buffer): void {
    const sets = this.#pending[list] as Buffer[];
    if (unit.length > MAX_SET_BYTES || sets.length >= MAX_SETS)
      throw new RejectedMedia("The video has too many or too large parameter sets.");
    if (!sets.some((set) => set.equals(unit))) sets.push(Buffer.from(unit));
  }

  #configure(): Buffer | null {
    const sets = this.#sets.map((current, list) => {
      const pending = this.#pending[list] as Buffer[];
      return pending.length > 0 ? pending : current;
    });
    const isSame = sets.every((list, type) => {
      const current = this.#sets[type] as Buffer[];
      return list.length === current.length && list.every((set, index) => set.equals(current[index] as Buffer));
    });
    this.#sets = sets;
    if ((isSame && this.#isConfigured) || sets.some((list) => list.length === 0)) return null;
    this.#isConfigured = true;
    try {
      return this.#syntax.configuration(sets);
    } catch (error) {
      throw new RejectedMedia(`The parameter sets of the video are malformed: ${(error as Error).message}`);
    }
  }
}

import { createHash, randomBytes } from "node:crypto";

/**
 * Keys of the objects of a replica. They sort by age, contain what a restore must know to choose among them, and a
 * checksum of the object, so that a list alone shows what is there.
 *
 * `generations/<generation>.json`, `segments/<generation>/<number>-<first>-<last>-<sum>`, where the number is split
 * because a directory of a million files is slow to list, `snapshots/<generation>/<until>-<at>-<sum>.json` with its
 * data in `snapshots/<generation>/<…>.zst`, and `secrets/<at>-<sum>.json`. Times are milliseconds.
 */
export const GENERATIONS = "generations/";
export const SNAPSHOTS = "snapshots/";
export const SEGMENTS = "segments/";
export const SECRETS = "secrets/";

/** `first` and `last`: times of the first and the last group of transactions in it. */
export type SegmentName = { key: string; generation: string; number: number; first: number; last: number; sum: string };
export type SnapshotName = { key: string; generation: string; until: number; at: number; sum: string };
export type GenerationName = { key: string; generation: string; at: number };
export type SecretsName = { key: string; at: number; sum: string };

const hex = (value: number, digits: number) => value.toString(16).padStart(digits, "0");
const TIME_DIGITS = 11;
const NUMBER_DIGITS = 12;
/** Segments in one directory: 4,096. */
const LOW_DIGITS = 3;

export const checksum = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex").slice(0, 32);

export const newGeneration = (at: number) => `${hex(at, TIME_DIGITS)}-${randomBytes(4).toString("hex")}`;
export const generationKey = (generation: string) => `${GENERATIONS}${generation}.json`;

const numbered = (number: number) => {
  const digits = hex(number, NUMBER_DIGITS);
  return `${digits.slice(0, -LOW_DIGITS)}/${digits.slice(-LOW_DIGITS)}`;
};

export const segmentsOf = (generation: string) => `${SEGMENTS}${generation}/`;
/** Precedes the keys of all segments after `number`, and follows those up to it. */
export const afterSegment = (generation: string, number: number) => `${segmentsOf(generation)}${numbered(number)}~`;
export const segmentKey = ({ generation, number, first, last, sum }: Omit<SegmentName, "key">) =>
  `${segmentsOf(generation)}${numbered(number)}-${hex(first, TIME_DIGITS)}-${hex(last, TIME_DIGITS)}-${sum}`;

export const snapshotsOf = (generation: string) => `${SNAPSHOTS}${generation}/`;
export const snapshotKey = ({ generation, until, at, sum }: Omit<SnapshotName, "key">) =>
  `${snapshotsOf(generation)}${hex(until, NUMBER_DIGITS)}-${hex(at, TIME_DIGITS)}-${sum}.json`;
export const newSnapshotData = (generation: string) =>
  `${snapshotsOf(generation)}data-${randomBytes(8).toString("hex")}.zst`;
export const isSnapshotData = (key: string) => key.startsWith(SNAPSHOTS) && key.endsWith(".zst");

export const secretsKey = ({ at, sum }: Omit<SecretsName, "key">) => `${SECRETS}${hex(at, TIME_DIGITS)}-${sum}.json`;

const FORMS = {
  generation: /^generations\/([0-9a-f]{11}-[0-9a-f]{8})\.json$/,
  segment:
    /^segments\/([0-9a-f]{11}-[0-9a-f]{8})\/([0-9a-f]{9}\/[0-9a-f]{3})-([0-9a-f]{11})-([0-9a-f]{11})-([0-9a-f]{32})$/,
  snapshot: /^snapshots\/([0-9a-f]{11}-[0-9a-f]{8})\/([0-9a-f]{12})-([0-9a-f]{11})-([0-9a-f]{32})\.json$/,
  secrets: /^secrets\/([0-9a-f]{11})-([0-9a-f]{32})\.json$/,
};
const value = (digits = "") => Number.parseInt(digits.replace("/", ""), 16);

/** Null for a key of another form, which the replica ignores. */
export function parseGeneration(key: string): GenerationName | null {
  const [, generation] = FORMS.generation.exec(key) ?? [];
  return generation === undefined ? null : { key, generation, at: startOf(generation) };
}

/** When the generation began. */
export const startOf = (generation: string) => value(generation.slice(0, TIME_DIGITS));

export function parseSegment(key: string): SegmentName | null {
  const [, generation, number, first, last, sum] = FORMS.segment.exec(key) ?? [];
  if (generation === undefined || sum === undefined) return null;
  return { key, generation, number: value(number), first: value(first), last: value(last), sum };
}

export function parseSnapshot(key: string): SnapshotName | null {
  const [, generation, until, at, sum] = FORMS.snapshot.exec(key) ?? [];
  if (generation === undefined || sum === undefined) return null;
  return { key, generation, until: value(until), at: value(at), sum };
}

export function parseSecrets(key: string): SecretsName | null {
  const [, at, sum] = FORMS.secrets.exec(key) ?? [];
  return sum === undefined ? null : { key, at: value(at), sum };
}

import { additionalVideoCodecs } from "#lib/codecs";
import { BUILT_IN_PROFILES, specOf } from "#media/encoding-profiles.ts";
import { bitsAtEqualVmaf, type RatePoint } from "./bd-rate.ts";

/** The curve of an encoder and preset. `seconds`: of the processor, for the encodes of all points; decoding is subtracted. */
export type Curve = { points: RatePoint[]; seconds: number };
/** By clip, and then by encoder and preset, or other program. */
export type Curves = Record<string, Record<string, Curve>>;

export const ENCODERS = { h264: "x264", hevc: "x265", av1: "SVT-AV1" } as const;

const { definition } = BUILT_IN_PROFILES.default;
const ladder = specOf(definition, null).video;
const perTitle = specOf({ ...definition, per_title: true }, null).video;

/** What all others are compared with: that of the ladder. */
export const REFERENCE = `${ENCODERS.h264} ${ladder.preset}`;
/** Those that the profiles use. */
export const CHOSEN: readonly string[] = [
  REFERENCE,
  `${ENCODERS.h264} ${perTitle.preset}`,
  ...additionalVideoCodecs.map(({ name, defaults }) => `${ENCODERS[name]} ${defaults.settings.preset}`),
];

/** Bits at equal VMAF; NaN when one is missing, or the curves have no range of VMAF in common. */
export function bitsOf(curves: Readonly<Record<string, Curve>>, ours: string, theirs: string): number {
  const a = curves[ours];
  const b = curves[theirs];
  return a && b ? bitsAtEqualVmaf(a.points, b.points) : Number.NaN;
}

/** Bits at equal VMAF and processor time, ours divided by theirs: geometric means over the clips that have both curves. */
export function meanRatios(curves: Curves, ours: string, theirs: string) {
  const pairs = Object.values(curves).flatMap((one) => {
    const a = one[ours];
    const b = one[theirs];
    return a && b ? [{ bits: bitsOf(one, ours, theirs), time: a.seconds / b.seconds }] : [];
  });
  const bits = pairs.map((one) => one.bits).filter((one) => !Number.isNaN(one));
  return { bits: geometricMean(bits), time: geometricMean(pairs.map(({ time }) => time)), clips: pairs.length };
}

const geometricMean = (values: readonly number[]) =>
  Math.exp(values.reduce((sum, one) => sum + Math.log(one), 0) / values.length);

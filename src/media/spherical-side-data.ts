import * as v from "valibot";
import { BOUND_UNITS, type Bounds, NO_BOUNDS, type SphericalMetadata, type SphericalProjection } from "#lib/codecs";

/** Side data of other types may have fields of the same names. */
const number = v.fallback(v.optional(v.number(), 0), 0);
const text = v.fallback(v.optional(v.string(), ""), "");

/** What ffprobe states of a stream in its side data "Stereo 3D" and "Spherical Mapping". */
export const SPHERICAL_ENTRIES = {
  side_data_type: text,
  type: text,
  inverted: number,
  projection: text,
  yaw: number,
  pitch: number,
  roll: number,
  padding: number,
  bound_left: number,
  bound_top: number,
  bound_right: number,
  bound_bottom: number,
};
type SideData = v.InferOutput<v.ObjectSchema<typeof SPHERICAL_ENTRIES, undefined>>;
type Size = { width: number; height: number };

/**
 * From Spherical Video V1 and V2 in MP4, and the elements Projection and StereoMode of Matroska. ffprobe rounds angles to
 * degrees and bounds to pixels, and does not know meshes (`mshp`). Null for video that is flat and monoscopic. `width`
 * and `height`: as coded.
 */
export function sphericalOf(all: readonly SideData[], size: Size): SphericalMetadata | null {
  const named = (name: string) => all.find((data) => data.side_data_type === name);
  const stereo = stereoOf(named("Stereo 3D"));
  const mapping = named("Spherical Mapping");
  const projection = mapping ? projectionOf(mapping, size) : null;
  return projection || (stereo && stereo !== "mono") ? { stereo, projection } : null;
}

/** The arrangement of the two views; null for one that the boxes have no value for, as for views in the opposite order. */
function stereoOf(data: SideData | undefined): SphericalMetadata["stereo"] {
  if (data?.inverted !== 0) return null;
  if (data.type === "2D") return "mono";
  if (data.type === "top and bottom") return "top_bottom";
  return data.type === "side by side" ? "left_right" : null;
}

function projectionOf(data: SideData, { width, height }: Size): SphericalProjection | null {
  const orientation = { yaw: angle(data.yaw, 180), pitch: angle(data.pitch, 90), roll: angle(data.roll, 180) };
  if (data.projection === "cubemap") {
    // More would leave nothing of a face.
    const isValid = data.padding >= 0 && data.padding < Math.max(width, height) / 2;
    return isValid ? { type: "cubemap", ...orientation, padding: data.padding / width } : null;
  }
  const bounds = boundsOf(data, { width, height });
  return bounds && { type: "equirectangular", ...orientation, bounds };
}

/** 0, which is straight ahead, for a value beyond the range of the boxes. */
const angle = (degrees: number, most: number) => (Math.abs(degrees) <= most ? Math.trunc(degrees) : 0);

function boundsOf(data: SideData, { width, height }: Size): Bounds | null {
  if (data.projection === "equirectangular") return NO_BOUNDS;
  const quarter = BOUND_UNITS / 4;
  if (data.projection === "half equirectangular") return { ...NO_BOUNDS, left: quarter, right: quarter };
  if (data.projection !== "tiled equirectangular") return null;
  const { bound_left, bound_top, bound_right, bound_bottom } = data;
  const [left, right] = edges(bound_left, bound_right, { size: width, degrees: 360 });
  const [top, bottom] = edges(bound_top, bound_bottom, { size: height, degrees: 180 });
  const isValid = [left, right, top, bottom].every((one) => one >= 0) && left + right < 1 && top + bottom < 1;
  const units = (share: number) => Math.floor(share * BOUND_UNITS);
  return isValid ? { top: units(top), bottom: units(bottom), left: units(left), right: units(right) } : null;
}

/**
 * Both bounds of a direction as shares of the full sphere, from pixels that are cut off at both sides of `size`. Cameras have
 * bounds of whole degrees: one that is a pixel away, by rounding, is taken for that.
 */
function edges(first: number, second: number, { size, degrees }: { size: number; degrees: number }) {
  const all = first + size + second;
  const share = (pixels: number) => {
    const nearest = Math.round((pixels / all) * degrees) / degrees;
    return Math.abs(nearest * all - pixels) <= 1 ? nearest : pixels / all;
  };
  return [share(first), share(second)] as const;
}

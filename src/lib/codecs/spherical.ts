/**
 * What a source states of its video for VR players, in the terms of Google's Spherical Video V2
 * (github.com/google/spatial-media, docs/spherical-video-v2-rfc.md).
 */

/** `top_bottom`: the view of the left eye is at the top. */
export const STEREO_MODES = ["mono", "top_bottom", "left_right"] as const;
export type StereoMode = (typeof STEREO_MODES)[number];

/** The number 1 as a fixed-point number of 32 bits, as the boxes have it. */
export const BOUND_UNITS = 2 ** 32;
/** What is cut off at each edge of the full sphere, in `BOUND_UNITS`. Opposite edges are less than 1 together. */
export type Bounds = { top: number; bottom: number; left: number; right: number };
export const NO_BOUNDS: Bounds = { top: 0, bottom: 0, left: 0, right: 0 };

/** `padding`: around each face, as a share of the width of the image, which scaling keeps. */
type Shape = { type: "equirectangular"; bounds: Bounds } | { type: "cubemap"; padding: number };
/** The angles are the initial orientation, in degrees. */
export type SphericalProjection = Shape & { yaw: number; pitch: number; roll: number };

/** At least one of both. `stereo`: null when it is not stated. */
export type SphericalMetadata = { stereo: StereoMode | null; projection: SphericalProjection | null };

/** The values of the tags with which an asset describes it. */
export const VR_PROJECTIONS = ["360", "180", "cubemap"] as const;
export const VR_STEREO = ["mono", "sbs", "tb"] as const;
export type VrTags = {
  vr_projection: (typeof VR_PROJECTIONS)[number] | null;
  vr_stereo: (typeof VR_STEREO)[number] | null;
};

const STEREO_TAGS = { mono: "mono", left_right: "sbs", top_bottom: "tb" } as const satisfies Record<StereoMode, string>;
/** Cameras for 180 degrees differ from it by rounding. */
const BOUND_TOLERANCE = BOUND_UNITS / 100;

/** Null for what the tags cannot express, such as a part of the sphere other than a half. */
export const vrTagsOf = ({ stereo, projection }: SphericalMetadata): VrTags => ({
  vr_projection: projection && (projection.type === "cubemap" ? "cubemap" : angleOf(projection.bounds)),
  vr_stereo: stereo && STEREO_TAGS[stereo],
});

function angleOf({ top, bottom, left, right }: Bounds): "360" | "180" | null {
  const isAbout = (bound: number, share: number) => Math.abs(bound - share * BOUND_UNITS) <= BOUND_TOLERANCE;
  if (!isAbout(top, 0) || !isAbout(bottom, 0)) return null;
  if (isAbout(left, 0) && isAbout(right, 0)) return "360";
  return isAbout(left, 1 / 4) && isAbout(right, 1 / 4) ? "180" : null;
}

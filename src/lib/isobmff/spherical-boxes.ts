import type { SphericalMetadata, SphericalProjection, StereoMode } from "#lib/codecs";
import { box, fullBox, words } from "./write-boxes.ts";

/** The values of Spherical Video V2. */
const STEREO_VALUES = { mono: 0, top_bottom: 1, left_right: 2 } as const satisfies Record<StereoMode, number>;
/** Angles are fixed-point numbers with 16 bits of fraction. */
const ANGLE_UNITS = 2 ** 16;
/** The only one that is defined. */
const CUBEMAP_LAYOUT = 0;
const SOURCE = Buffer.from("vodbox\0", "latin1");

/** The boxes `st3d` and `sv3d` of the sample entry of video of `width` pixels, as far as there are metadata for them. */
export const sphericalBoxes = ({ stereo, projection }: SphericalMetadata, width: number): Buffer[] => [
  ...(stereo ? [fullBox("st3d", 0, 0, Buffer.from([STEREO_VALUES[stereo]]))] : []),
  ...(projection ? [sv3d(projection, width)] : []),
];

const sv3d = (projection: SphericalProjection, width: number) =>
  box(
    "sv3d",
    fullBox("svhd", 0, 0, SOURCE),
    box(
      "proj",
      fullBox(
        "prhd",
        0,
        0,
        words(...[projection.yaw, projection.pitch, projection.roll].map((degrees) => degrees * ANGLE_UNITS)),
      ),
      shapeOf(projection, width),
    ),
  );

function shapeOf(projection: SphericalProjection, width: number): Buffer {
  if (projection.type === "cubemap")
    return fullBox("cbmp", 0, 0, words(CUBEMAP_LAYOUT, Math.round(projection.padding * width)));
  const { top, bottom, left, right } = projection.bounds;
  return fullBox("equi", 0, 0, words(top, bottom, left, right));
}

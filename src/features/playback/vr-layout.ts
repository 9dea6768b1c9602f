import type { TagValue } from "#storage/db/schema.ts";

/** The projection of the video around the viewer, in the terms of DeoVR and of HereSphere. `fov` in degrees. */
export type Projection = {
  screenType: "flat" | "dome" | "sphere" | "fisheye" | "mkx200" | "rf52";
  projection: "perspective" | "equirectangular" | "equirectangular360" | "fisheye" | "cubemap" | "equiangularCubemap";
  fov: number;
  lens: "Linear" | "MKX200" | "MKX220" | "VRCA220";
};
export type Stereo = { stereoMode: "off" | "sbs" | "tb" | "cuv"; stereo: "mono" | "sbs" | "tb" };

const flat: Projection = { screenType: "flat", projection: "perspective", fov: 180, lens: "Linear" };
const dome: Projection = { screenType: "dome", projection: "equirectangular", fov: 180, lens: "Linear" };
const sphere: Projection = { screenType: "sphere", projection: "equirectangular360", fov: 360, lens: "Linear" };
const fisheye: Projection = { screenType: "fisheye", projection: "fisheye", fov: 180, lens: "Linear" };
const rf52: Projection = { ...fisheye, screenType: "rf52", fov: 190 };

/** Common names. DeoVR does not support cube maps, and for wider lenses it gets the nearest value. */
const PROJECTIONS: Record<string, Projection> = {
  flat,
  rectilinear: flat,
  perspective: flat,
  dome,
  "180": dome,
  vr180: dome,
  equirectangular180: dome,
  half_equirectangular: dome,
  sphere,
  "360": sphere,
  vr360: sphere,
  equirectangular: sphere,
  equirectangular360: sphere,
  fisheye,
  fisheye190: rf52,
  rf52,
  mkx200: { ...fisheye, screenType: "mkx200", fov: 200, lens: "MKX200" },
  mkx220: { ...fisheye, fov: 220, lens: "MKX220" },
  vrca220: { ...fisheye, fov: 220, lens: "VRCA220" },
  cubemap: { ...flat, projection: "cubemap", fov: 360 },
  eac: { ...flat, projection: "equiangularCubemap", fov: 360 },
  equiangular_cubemap: { ...flat, projection: "equiangularCubemap", fov: 360 },
};
const mono: Stereo = { stereoMode: "off", stereo: "mono" };
const sbs: Stereo = { stereoMode: "sbs", stereo: "sbs" };
const tb: Stereo = { stereoMode: "tb", stereo: "tb" };
const STEREO: Record<string, Stereo> = {
  off: mono,
  mono,
  none: mono,
  sbs,
  lr: sbs,
  side_by_side: sbs,
  left_right: sbs,
  tb,
  ou: tb,
  top_bottom: tb,
  over_under: tb,
  cuv: { stereoMode: "cuv", stereo: "sbs" },
};

const chosen = <T>(from: Record<string, T>, tag: TagValue | undefined, none: T): T => {
  const name = String(tag ?? "")
    .trim()
    .toLowerCase()
    .replaceAll(/[ -]/g, "_");
  return Object.hasOwn(from, name) ? (from[name] as T) : none;
};

/** From the tags `vr_projection` and `vr_stereo`; flat and monoscopic when they are missing or unknown. */
export const layoutOf = ({ vr_projection, vr_stereo }: Record<string, TagValue>): Projection & Stereo => ({
  ...chosen(PROJECTIONS, vr_projection, flat),
  ...chosen(STEREO, vr_stereo, mono),
});

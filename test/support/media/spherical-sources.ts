import { box, fullBox, words } from "#src/lib/isobmff/write-boxes.ts";

/** Boxes of Google's Spherical Video V2 and V1, as cameras write them. */
type Sphere = {
  stereo?: number;
  /** Degrees. */
  pose?: readonly [yaw: number, pitch: number, roll: number];
  /** The box within `proj` that states the shape. */
  shape?: Buffer | null;
};

export const st3d = (stereo: number): Buffer => fullBox("st3d", 0, 0, Buffer.from([stereo]));

/** `bounds`: top, bottom, left, right, each of 2^32. */
export const equi = (...bounds: number[]): Buffer =>
  fullBox("equi", 0, 0, words(...(bounds.length ? bounds : [0, 0, 0, 0])));
export const cbmp = (padding: number, layout = 0): Buffer => fullBox("cbmp", 0, 0, words(layout, padding));
export const HALF = equi(0, 0, 2 ** 30, 2 ** 30 - 1);

export function sphere({ stereo, pose = [0, 0, 0], shape = equi() }: Sphere): Buffer {
  const angles = words(...pose.map((degrees) => degrees * 2 ** 16));
  const proj = shape && box("proj", fullBox("prhd", 0, 0, angles), shape);
  const sv3d = proj && box("sv3d", fullBox("svhd", 0, 0, Buffer.from("camera\0")), proj);
  return Buffer.concat([...(stereo === undefined ? [] : [st3d(stereo)]), ...(sv3d ? [sv3d] : [])]);
}

const V1_ID = Buffer.from("ffcc8263f8554a938814587a02521fdd", "hex");

/** A file with the box of V1 at the end of its first track, which is behind the media. */
export function withV1(file: Buffer, stereo: string): Buffer {
  const field = (name: string, value: string) => `<GSpherical:${name}>${value}</GSpherical:${name}>`;
  const xml = [
    '<?xml version="1.0"?><rdf:SphericalVideo xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"',
    ' xmlns:GSpherical="http://ns.google.com/videos/1.0/spherical/">',
    ...[field("Spherical", "true"), field("Stitched", "true"), field("StitchingSoftware", "camera")],
    ...[field("ProjectionType", "equirectangular"), field("StereoMode", stereo), "</rdf:SphericalVideo>"],
  ];
  const added = box("uuid", V1_ID, Buffer.from(xml.join("")));
  const moov = file.lastIndexOf("moov") - 4;
  const trak = file.indexOf("trak", moov) - 4;
  const end = trak + file.readUInt32BE(trak);
  const result = Buffer.concat([file.subarray(0, end), added, file.subarray(end)]);
  for (const at of [moov, trak]) result.writeUInt32BE(result.readUInt32BE(at) + added.length, at);
  return result;
}

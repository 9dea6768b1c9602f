import { isFirstFrame, posterOf } from "#features/assets/poster.ts";
import { invalid, notFound } from "#lib/base";
import {
  type AnimatedFormat,
  type Box,
  FIT_MODES,
  type FitMode,
  type Rotation,
  type StillFormat,
} from "#media/image.ts";
import type { AssetRow } from "#storage/db/schema.ts";

/** Times in seconds. A still image without a time is the poster. */
export type ImageRequest =
  | ({ kind: "still"; time: number | null } & StillShape)
  | Animation
  /** All tiles of the storyboard. */
  | { kind: "sheet"; width: number | null; format: StillFormat };
export type StillShape = { box: Box; rotation: Rotation; format: StillFormat };
type Animation = {
  kind: "animated";
  start: number;
  end: number;
  width: number | null;
  height: number | null;
  fps: number;
  format: AnimatedFormat;
};

const SIDE = [16, 1920] as const;
const ANIMATED_SIDE = [16, 640] as const;
const USUAL_WIDTH = 320;
const FPS = [1, 30] as const;
const USUAL_SECONDS = 5;
const MAX_SECONDS = 10;

/**
 * Parses a URL below an asset's media as an image request; null when it is not one, or names an existing file. Throws
 * 422 for an invalid parameter; unknown ones are ignored.
 */
export function parseImageRequest(asset: AssetRow, file: string, query: URLSearchParams): ImageRequest | null {
  const shape = parseStillShape(file, query);
  if (shape) {
    const request: ImageRequest = { kind: "still", time: timeOf(asset, query), ...shape };
    const { width, height } = shape.box;
    const isWhole = request.time === null && width === null && height === null && rotationName(shape.rotation) === "";
    return isWhole && (shape.format === "jpg" || posterOf(asset)?.endsWith(`.${shape.format}`)) ? null : request;
  }
  const [, sheet] = /^storyboard\.(jpg|png|webp)$/.exec(file) ?? [];
  if (sheet) {
    const width = whole(query, "width", SIDE);
    if (asset.storyboardPath === null) return notFound("image");
    return { kind: "sheet", width: width && even(width), format: sheet as StillFormat };
  }
  const [, animated] = /^animated\.(webp|gif)$/.exec(file) ?? [];
  return animated ? animationRequest(asset, query, animated as AnimatedFormat) : null;
}

/** Format, size and rotation of `thumbnail.<format>`; null for another file. Throws 422 for an invalid parameter. */
export function parseStillShape(file: string, query: URLSearchParams): StillShape | null {
  const [, format] = /^thumbnail\.(jpg|png|webp)$/.exec(file) ?? [];
  return format === undefined
    ? null
    : { box: boxOf(query), rotation: rotationOf(query), format: format as StillFormat };
}

/** The canonical form of equivalent requests: part of the name under which the image is stored. */
export function nameOf(request: ImageRequest): string {
  if (request.kind === "animated") {
    const { start, end, width, height, fps, format } = request;
    return `animated-${start}-${end}-w${width ?? ""}${height === null ? "" : `-h${height}`}-r${fps}.${format}`;
  }
  if (request.kind === "sheet")
    return `storyboard${request.width === null ? "" : `-w${request.width}`}.${request.format}`;
  return `${request.time === null ? "poster" : `at-${request.time}`}-${nameOfShape(request)}`;
}

/** The same of a still image without its time. */
export function nameOfShape({ box: { width, height, fit }, rotation, format }: StillShape): string {
  const size = `w${width ?? ""}-h${height ?? ""}${width !== null && height !== null ? `-${fit}` : ""}`;
  return `${size}${rotationName(rotation)}.${format}`;
}

/** Empty for an image that is not turned. */
const rotationName = ({ rotate, isFlippedHorizontally, isFlippedVertically }: Rotation) =>
  `${rotate === 0 ? "" : `-r${rotate}`}${isFlippedHorizontally ? "-fh" : ""}${isFlippedVertically ? "-fv" : ""}`;

const ROTATIONS = [0, 90, 180, 270] as const;

/** How an image is to be turned. Throws 422. */
export function rotationOf(query: URLSearchParams): Rotation {
  const given = query.get("rotate");
  const rotate = ROTATIONS.find((degrees) => String(degrees) === (given ?? "0"));
  if (rotate === undefined) return invalid("rotate", `must be one of ${ROTATIONS.join(", ")}`);
  const flag = (name: string) => {
    const value = query.get(name) ?? "false";
    return value === "true" || (value !== "false" && invalid(name, "must be true or false"));
  };
  return { rotate, isFlippedHorizontally: flag("flip_h"), isFlippedVertically: flag("flip_v") };
}

function animationRequest(asset: AssetRow, query: URLSearchParams, format: AnimatedFormat): Animation {
  const length = asset.durationSeconds;
  const start = seconds(query, "start") ?? 0;
  const end = Math.min(seconds(query, "end") ?? start + USUAL_SECONDS, Math.max(tenths(length), 0.1));
  if (start > 0 && start >= length) invalid("start", `must be before the end of the video, ${length} s`);
  if (end <= start) invalid("end", "must be after start");
  if (end - start > MAX_SECONDS + 0.01) invalid("end", `must be at most ${MAX_SECONDS} s after start`);
  const wide = whole(query, "width", ANIMATED_SIDE);
  const high = whole(query, "height", ANIMATED_SIDE);
  const width = wide ?? (high === null ? USUAL_WIDTH : null);
  const sides = { width: width && even(width), height: high && even(high) };
  return { kind: "animated", start, end, ...sides, fps: whole(query, "fps", FPS) ?? 15, format };
}

function timeOf(asset: AssetRow, query: URLSearchParams): number | null {
  const time = seconds(query, "time") ?? (isFirstFrame(asset) ? 0 : null);
  // Any time beyond the end shows the last frame.
  return time === null ? null : Math.min(time, tenths(Math.ceil(asset.durationSeconds * 10) / 10));
}

function boxOf(query: URLSearchParams): Box {
  const width = whole(query, "width", SIDE);
  const height = whole(query, "height", SIDE);
  // Mux's value for a crop that detects the subject; here it is the center.
  const value = query.get("fit_mode") ?? "preserve";
  const fit = value === "smartcrop" ? "crop" : value;
  if (!FIT_MODES.includes(fit as FitMode)) invalid("fit_mode", `must be one of ${FIT_MODES.join(", ")}, smartcrop`);
  return { width: width && even(width), height: height && even(height), fit: fit as FitMode };
}

const even = (pixels: number) => pixels - (pixels % 2);
const tenths = (value: number) => Math.round(value * 10) / 10;

/** Rounded to a tenth of a second, which bounds the number of stored images. */
function seconds(query: URLSearchParams, name: string): number | null {
  const value = query.get(name);
  if (value === null) return null;
  if (!/^\d{1,7}(\.\d{1,9})?$/.test(value)) invalid(name, "must be a number of seconds, such as 12.5");
  return tenths(Number(value));
}

function whole(query: URLSearchParams, name: string, [least, most]: readonly [number, number]): number | null {
  const text = query.get(name);
  if (text === null) return null;
  const value = /^\d{1,5}$/.test(text) ? Number(text) : Number.NaN;
  if (!(value >= least && value <= most)) invalid(name, `must be a whole number from ${least} to ${most}`);
  return value;
}

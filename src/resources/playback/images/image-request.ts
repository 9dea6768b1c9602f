import type { AssetRow } from "../../../../storage/db/schema.ts";
import { invalid } from "../../../lib/errors.ts";
import { type AnimatedFormat, type Box, FIT_MODES, type FitMode, type StillFormat } from "../../../media/image.ts";

/** Times in seconds. A still without one is the poster. */
export type ImageRequest =
  | { kind: "still"; time: number | null; box: Box; format: StillFormat }
  | { kind: "animated"; start: number; end: number; width: number; fps: number; format: AnimatedFormat };

const SIDE = [16, 1920] as const;
const ANIMATED_WIDTH = [16, 640] as const;
const FPS = [1, 30] as const;
const USUAL_SECONDS = 5;
const MAX_SECONDS = 10;

/**
 * What an address below an asset's media asks to be made; null where it names no such picture, or one that lies ready.
 * 422 for a parameter that is not what it must be; others are left alone.
 */
export function parseImageRequest(asset: AssetRow, file: string, query: URLSearchParams): ImageRequest | null {
  const [, still] = /^thumbnail\.(jpg|png|webp)$/.exec(file) ?? [];
  if (still) {
    const asked: ImageRequest = {
      kind: "still",
      time: timeOf(asset, query),
      box: boxOf(query),
      format: still as StillFormat,
    };
    const isWhole = asked.time === null && asked.box.width === null && asked.box.height === null;
    return isWhole && (still === "jpg" || asset.thumbnailPath?.endsWith(`.${still}`)) ? null : asked;
  }
  const [, animated] = /^animated\.(webp|gif)$/.exec(file) ?? [];
  return animated ? animationAsked(asset, query, animated as AnimatedFormat) : null;
}

/** The same for whatever leads to the same picture: part of the name under which it is kept. */
export function nameOf(asked: ImageRequest): string {
  if (asked.kind === "animated") {
    const { start, end, width, fps, format } = asked;
    return `animated-${start}-${end}-w${width}-r${fps}.${format}`;
  }
  const { time, format } = asked;
  const { width, height, fit } = asked.box;
  const at = time === null ? "poster" : `at-${time}`;
  return `${at}-w${width ?? ""}-h${height ?? ""}${width !== null && height !== null ? `-${fit}` : ""}.${format}`;
}

function animationAsked(asset: AssetRow, query: URLSearchParams, format: AnimatedFormat): ImageRequest {
  const length = asset.durationSeconds;
  const start = seconds(query, "start") ?? 0;
  const end = Math.min(seconds(query, "end") ?? start + USUAL_SECONDS, Math.max(tenths(length), 0.1));
  if (start > 0 && start >= length) invalid("start", `must lie before the end of the video, ${length} s`);
  if (end <= start) invalid("end", "must come after start");
  if (end - start > MAX_SECONDS + 0.01) invalid("end", `must come at most ${MAX_SECONDS} s after start`);
  const width = even(whole(query, "width", ANIMATED_WIDTH) ?? 320);
  return { kind: "animated", start, end, width, fps: whole(query, "fps", FPS) ?? 15, format };
}

function timeOf(asset: AssetRow, query: URLSearchParams): number | null {
  const time = seconds(query, "time");
  // Whatever lies beyond the end shows the same.
  return time === null ? null : Math.min(time, tenths(Math.ceil(asset.durationSeconds * 10) / 10));
}

function boxOf(query: URLSearchParams): Box {
  const [width, height] = [whole(query, "width", SIDE), whole(query, "height", SIDE)];
  // Mux's word for a crop that looks for what matters; ours takes the middle.
  const given = query.get("fit_mode") ?? "preserve";
  const fit = given === "smartcrop" ? "crop" : given;
  if (!FIT_MODES.includes(fit as FitMode)) invalid("fit_mode", `must be one of ${FIT_MODES.join(", ")}, smartcrop`);
  return { width: width && even(width), height: height && even(height), fit: fit as FitMode };
}

const even = (pixels: number) => pixels - (pixels % 2);
const tenths = (value: number) => Math.round(value * 10) / 10;

/** To a tenth of a second, so that what is kept stays within bounds. */
function seconds(query: URLSearchParams, name: string): number | null {
  const given = query.get(name);
  if (given === null) return null;
  if (!/^\d{1,7}(\.\d{1,9})?$/.test(given)) invalid(name, "must be a number of seconds, such as 12.5");
  return tenths(Number(given));
}

function whole(query: URLSearchParams, name: string, [least, most]: readonly [number, number]): number | null {
  const given = query.get(name);
  if (given === null) return null;
  const value = /^\d{1,5}$/.test(given) ? Number(given) : Number.NaN;
  if (!(value >= least && value <= most)) invalid(name, `must be a whole number from ${least} to ${most}`);
  return value;
}

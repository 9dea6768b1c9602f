import { create } from "content-disposition";
import { decodeJwt } from "jose";
import type { App } from "#app.ts";
import { notFound } from "#lib/base";
import type { Context, Reply } from "#platform/http/route.ts";
import { findPublicAsset } from "../assets/queries.ts";
import { nameOfFile } from "../assets/static-names.ts";
import type { PublicAsset } from "../assets/urls.ts";
import { LIVE_MASTER } from "../live/urls.ts";
import type { MediaHandler } from "../playback/media.ts";
import type { PlaybackTokens } from "../playback/token.ts";
import { STATIC, staticFiles } from "../static-renditions/deliver.ts";
import { invalidParameter, notSupported } from "./errors.ts";
import { redirectToChannel } from "./live/playback-ids.ts";

/** The first labels of Mux's hosts for what players request. */
export const HOSTS = ["stream", "image"] as const;
export type MuxHost = (typeof HOSTS)[number];

/**
 * Query parameters, each with the values that are accepted (null: any). Every other one of Mux is refused, because the
 * result would be another one than requested. `redundant_streams`: there is one origin, so its second URLs would be the
 * first ones. `rendition_order=desc` is our order.
 */
type Parameters = Record<string, RegExp | null>;
const RESOLUTION = /^(270|360|480|540|720|1080|1440|2160)p$/;
const MANIFEST: Parameters = {
  redundant_streams: /^(true|false)$/,
  rendition_order: /^(asc|desc)$/,
  max_resolution: RESOLUTION,
  min_resolution: RESOLUTION,
};
const SHAPE: Parameters = {
  width: null,
  height: null,
  fit_mode: null,
  rotate: null,
  flip_v: null,
  flip_h: null,
};
const STILL: Parameters = { time: null, ...SHAPE };
/** A running stream has its current frame only. */
const LATEST: Parameters = { latest: /^(true|false)$/, ...SHAPE };
const ANIMATION: Parameters = { start: null, end: null, width: null, height: null, fps: null };
const STORYBOARD: Parameters = { format: /^(jpg|png|webp)$/ };
const SHEET: Parameters = { width: null };
const FILE: Parameters = { download: null };
const STILL_NAME = /^thumbnail\.(jpg|png|webp)$/;

type Target = { file: string; parameters: Parameters };

/** Files of a host below a playback id, as those of `/media/<id>/`. Throws 404. */
async function targetOf(app: App, host: MuxHost, file: string, asset: PublicAsset): Promise<Target> {
  if (host === "image") {
    if (STILL_NAME.test(file)) return { file, parameters: STILL };
    if (/^animated\.(gif|webp)$/.test(file)) return { file, parameters: ANIMATION };
    if (/^storyboard\.(jpg|png|webp)$/.test(file)) return { file, parameters: SHEET };
    if (/^storyboard\.(vtt|json)$/.test(file)) return { file, parameters: STORYBOARD };
    return notFound("image");
  }
  if (file === "") return { file: "master.m3u8", parameters: MANIFEST };
  const [, text] = /^text\/([1-9]\d{0,14}\.(?:vtt|txt))$/.exec(file) ?? [];
  if (text !== undefined) return { file: `subtitles/${text}`, parameters: {} };
  const name = nameOfFile(file);
  if (name !== null && (await staticFiles(app).isWanted(asset.id, name)))
    return { file: STATIC + file, parameters: FILE };
  if (asset.mp4Path !== null && isOnlyFile(file, asset)) return { file: "video.mp4", parameters: FILE };
  return notFound("file");
}

/** The MP4 file of the encoding profile, of the largest size that players without HLS play. */
function isOnlyFile(file: string, { width, height }: PublicAsset): boolean {
  if (file === "highest.mp4" || file === "high.mp4") return true;
  return file === "capped-1080p.mp4" && Math.min(width ?? 0, height ?? 0) <= 1080;
}

/** `<playback id>.m3u8` or `<playback id>/<file>`. */
function split(path: string, host: MuxHost): { id: string; file: string } {
  const slash = path.indexOf("/");
  if (slash > 0) {
    const file = path.slice(slash + 1);
    return file === "" ? notFound("file") : { id: path.slice(0, slash), file };
  }
  return host === "stream" && path.endsWith(".m3u8") ? { id: path.slice(0, -5), file: "" } : notFound("file");
}

export type Playing = { media: MediaHandler; tokens: PlaybackTokens };

/**
 * Answers a request for media, as `/media/<playback id>/…` does; `root` is as in `MediaHandler`. No reference is a path from the
 * root, which some of Mux's players do not resolve. Throws 404, 422 for a parameter without a counterpart.
 */
export async function deliver(
  context: Context,
  { media, tokens }: Playing,
  { host, path, root }: { host: MuxHost; path: string; root: string },
): Promise<Response | Reply> {
  const { id, file: named } = split(path, host);
  const asset = await findPublicAsset(context.app, id);
  if (!asset) return deliverLive(context, tokens, host, { id, file: named });
  const { file, parameters } = await targetOf(context.app, host, named, asset);
  const url = new URL(context.url);
  const token = url.searchParams.get("token");
  for (const [name, value] of claimsOf(token, parameters)) url.searchParams.set(name, value);
  requireParameters(url.searchParams, parameters);
  const download = url.searchParams.get("download");
  if (download !== null && download.length > 200) invalidParameter("download", "must have at most 200 characters");
  // What is accepted without a meaning here must not reach what has one for it.
  for (const name of ["redundant_streams", "download"]) url.searchParams.delete(name);
  const own: Context = Object.assign(Object.create(context), { url, params: { id, file } });
  const response = await media(own, { root });
  if (download !== null && response.ok) {
    const name = download === "" ? "video" : download;
    const extension = file.slice(file.lastIndexOf("."));
    response.headers.set("content-disposition", create(name.endsWith(extension) ? name : name + extension));
  }
  return response;
}

/** Redirects to the playlist or the current frame of a channel. Throws as `deliver`, and 403. */
function deliverLive(
  { app, url, headers }: Context,
  tokens: PlaybackTokens,
  host: MuxHost,
  { id, file }: { id: string; file: string },
): Promise<Reply> {
  const isPoster = host === "image" && STILL_NAME.test(file);
  if (!isPoster && (host !== "stream" || file !== "")) return notFound("playback id");
  const parameters = isPoster ? LATEST : MANIFEST;
  const token = url.searchParams.get("token");
  const query = new URLSearchParams(url.searchParams);
  for (const [name, value] of claimsOf(token, parameters)) query.set(name, value);
  requireParameters(query, parameters);
  for (const name of ["token", "redundant_streams", "latest"]) query.delete(name);
  return redirectToChannel(app, tokens.of(headers), {
    id,
    token,
    file: isPoster ? file : LIVE_MASTER,
    query,
    isPoster,
  });
}

function requireParameters(query: URLSearchParams, parameters: Parameters): void {
  for (const [name, value] of query) {
    if (name === "token") continue;
    if (!Object.hasOwn(parameters, name)) notSupported(name.slice(0, 50));
    if (parameters[name]?.test(value) === false) notSupported(`${name}=${value.slice(0, 50)}`);
  }
}

/**
 * Mux's tokens contain the parameters of the URL as claims, and those in the URL do not count then. The token is verified
 * with the request.
 */
function claimsOf(token: string | null, parameters: Parameters): [name: string, value: string][] {
  if (token === null) return [];
  try {
    const claims = decodeJwt(token.slice(0, 4096));
    return Object.keys(parameters).flatMap((name) => {
      const value = claims[name];
      return typeof value === "string" || typeof value === "number" ? [[name, String(value)] as [string, string]] : [];
    });
  } catch {
    return [];
  }
}

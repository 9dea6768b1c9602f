import type { RenditionRow } from "../../../storage/db/schema.ts";
import type { ObjectStore } from "../../../storage/objects/store.ts";
import { references } from "../../lib/m3u8.ts";

export type Published = { durationSeconds: number; renditions: RenditionRow[] };
const MAX_PLAYLIST_BYTES = 8 * 2 ** 20;

/**
 * What the published HLS manifest itself says (RFC 8216, 4.3), for workers that do not tell: the length of its first
 * playlist and its variants. What cannot be read is left out; players are stricter judges than this.
 */
export async function readPublished(objects: ObjectStore, manifestKey: string): Promise<Published> {
  const master = await read(objects, manifestKey);
  const folder = manifestKey.slice(0, manifestKey.lastIndexOf("/") + 1);
  const renditions = [...master.matchAll(/^#EXT-X-STREAM-INF:(.*)\r?\n([^#\r\n]+)/gm)].map(
    ([, attributes = "", uri = ""]) => rendition(attributes, folder + uri.trim()),
  );
  const playlist = renditions[0] ? await read(objects, renditions[0].playlist_path) : master;
  const durations = references(playlist).length > 0 ? [...playlist.matchAll(/^#EXTINF:([\d.]+)/gm)] : [];
  return { durationSeconds: durations.reduce((sum, [, seconds]) => sum + Number(seconds), 0), renditions };
}

function rendition(attributes: string, playlistPath: string): RenditionRow {
  const value = (name: string) =>
    new RegExp(`(?:^|,)${name}=("[^"]*"|[^,]*)`).exec(attributes)?.[1]?.replaceAll('"', "");
  const [width, height] = (value("RESOLUTION") ?? "").split("x").map(Number);
  return {
    name: height ? `${height}p` : "audio",
    width: width || null,
    height: height || null,
    bandwidth: Number(value("BANDWIDTH")) || 0,
    average_bandwidth: Number(value("AVERAGE-BANDWIDTH")) || null,
    codecs: value("CODECS") ?? "",
    frame_rate: Number(value("FRAME-RATE")) || null,
    playlist_path: playlistPath,
  };
}

async function read(objects: ObjectStore, key: string): Promise<string> {
  const info = await objects.head(key).catch(() => null);
  if (!info || info.bytes > MAX_PLAYLIST_BYTES) return "";
  const found = await objects.get(key);
  return found ? Buffer.concat(await found.body.toArray()).toString("utf8") : "";
}

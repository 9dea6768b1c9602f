import type { App } from "#app.ts";
import { DOCUMENT_LIMITS, HttpError } from "#lib/base";
import { hdrOfVideoRange } from "#lib/codecs";
import { type HlsPlaylist, type HlsVariant, uniqueVariants } from "#lib/manifests";
import { folderOf } from "#model/object-keys.ts";
import { parseDocument } from "#platform/parsing/parse-document.ts";
import type { RenditionRow } from "#storage/db/schema.ts";
import { InvalidKey } from "#storage/objects/keys.ts";
import { readSmallObject } from "#storage/objects/small-objects.ts";
import { type ObjectStore, ObjectTooLarge } from "#storage/objects/store.ts";

export type MasterPlaylist = { durationSeconds: number; renditions: RenditionRow[] };
type Playlist = Pick<HlsPlaylist, "variants" | "durationSeconds">;

/**
 * Reads the published HLS manifest (RFC 8216, 4.3), for workers that do not report its values: the duration of its
 * first playlist and its variants. Unreadable parts are left out; players are stricter.
 */
export async function readMasterPlaylist(
  app: App,
  objects: ObjectStore,
  { manifestKey, tenantId }: { manifestKey: string; tenantId: number },
): Promise<MasterPlaylist> {
  const playlistAt = async (key: string): Promise<Playlist> => {
    try {
      return await parseDocument(app, "hls", { text: await read(objects, key), path: key, stored: 0 }, { tenantId });
    } catch (error) {
      if (!(error instanceof HttpError && error.code === "document_too_complex")) throw error;
      return { variants: [], durationSeconds: 0 };
    }
  };
  const master = await playlistAt(manifestKey);
  const folder = folderOf(manifestKey);
  const renditions = uniqueVariants(master.variants).map((variant) => rendition(variant, folder + variant.uri));
  const playlist = renditions[0] ? await playlistAt(renditions[0].playlist_path) : master;
  return { durationSeconds: playlist.durationSeconds, renditions };
}

function rendition({ attributes }: HlsVariant, playlistPath: string): RenditionRow {
  const value = (name: string) => attributes.get(name);
  const [width, height] = (value("RESOLUTION") ?? "").split("x").map(Number);
  return {
    name: height ? `${height}p` : "audio",
    width: width || null,
    height: height || null,
    bandwidth: Number(value("BANDWIDTH")) || 0,
    average_bandwidth: Number(value("AVERAGE-BANDWIDTH")) || null,
    codecs: value("CODECS") ?? "",
    frame_rate: Number(value("FRAME-RATE")) || null,
    hdr: hdrOfVideoRange(value("VIDEO-RANGE")),
    playlist_path: playlistPath,
  };
}

async function read(objects: ObjectStore, key: string): Promise<string> {
  try {
    const bytes = await readSmallObject(objects, key, { maxBytes: DOCUMENT_LIMITS.servedBytes });
    return bytes?.toString("utf8") ?? "";
  } catch (error) {
    if (error instanceof ObjectTooLarge || error instanceof InvalidKey) return "";
    throw error;
  }
}

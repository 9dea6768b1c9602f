import type { AssetRow, SubtitleRow } from "../../../storage/db/schema.ts";
import type { App } from "../../app.ts";
import { contentTypeOf } from "../../lib/media-types.ts";
import { mediaUrl } from "../assets/addresses.ts";

const SIGNED_FOR_MS = 3_600_000;

/** Below `/media/<asset>/`: the same for as long as there is the track, whatever it says. */
export const subtitleFile = ({ id }: Pick<SubtitleRow, "id">) => `subtitles/${id}.vtt`;

/**
 * An address that works as it is. Of a signed asset it is one of storage, for this text and an hour: a playback token
 * would open the video too, and who reads a list of subtitles need not have that scope. Null where storage is off.
 */
export async function subtitleUrl(app: App, asset: AssetRow, row: SubtitleRow): Promise<string | null> {
  if (!app.objects) return null;
  if (asset.playbackPolicy === "public") return mediaUrl(app.baseUrl(), asset, subtitleFile(row), null);
  const expiresAt = new Date(app.clock.now() + SIGNED_FOR_MS);
  const contentType = contentTypeOf(row.objectKey);
  return (await app.objects.signGet(row.objectKey, { expiresAt, contentType })).url;
}

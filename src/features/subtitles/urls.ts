import type { App } from "#app.ts";
import { contentTypeOf } from "#model/media-types.ts";
import type { Route } from "#platform/http/route.ts";
import type { AssetRow, SubtitleRow } from "#storage/db/schema.ts";
import { mediaUrl } from "../assets/urls.ts";
import { requireSubtitle } from "./queries.ts";
import { toSubtitle } from "./schema.ts";

const SIGNED_FOR_MS = 3_600_000;

/** Below `/media/<asset>/`: permanent while the track exists, whatever its text. */
export const subtitleFile = ({ id }: Pick<SubtitleRow, "id">) => `subtitles/${id}.vtt`;

/** A playlist of the text alone, as a master playlist requires (RFC 8216, 4.3.4.1). */
export const subtitleList = ({ id }: Pick<SubtitleRow, "id">) => `subtitles/${id}.m3u8`;

/**
 * A URL that needs no further credentials. For signed playback it is a storage URL of this text, valid for an hour: a
 * playback token would also allow the video, for which a reader of subtitles may have no scope. Null when storage is
 * off, and while there is no text.
 */
export async function subtitleUrl(app: App, asset: AssetRow, row: SubtitleRow): Promise<string | null> {
  if (!app.objects || row.status === "pending") return null;
  if (asset.playbackPolicy === "public") return mediaUrl(app.baseUrl(), asset, subtitleFile(row), null);
  const expiresAt = new Date(app.clock.now() + SIGNED_FOR_MS);
  const contentType = contentTypeOf(row.objectKey);
  return (await app.objects.signGet(row.objectKey, { expiresAt, contentType })).url;
}

/** The record in the API. */
export const subtitleRecord = async (app: App, asset: AssetRow, row: SubtitleRow) =>
  toSubtitle(row, await subtitleUrl(app, asset, row));

/** The URL may be a credential: for a repeated request it is created again, not stored. */
export const refreshedUrl: Route["idempotent"] = {
  secretFields: ["url"],
  async restore({ app, caller, params }, body) {
    const { video_asset_id } = params as { video_asset_id: number };
    const { id } = body as { id: number };
    const subtitle = await requireSubtitle(app.db, caller, { video_asset_id, id }).catch(() => null);
    return { ...(body as object), url: subtitle && (await subtitleUrl(app, subtitle.asset, subtitle.subtitle)) };
  },
};

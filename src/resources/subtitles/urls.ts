import type { AssetRow, SubtitleRow } from "../../../storage/db/schema.ts";
import type { App } from "../../app.ts";
import type { Route } from "../../http/route.ts";
import { contentTypeOf } from "../../lib/media-types.ts";
import { mediaUrl } from "../assets/urls.ts";
import { requireSubtitle } from "./queries.ts";
import { toSubtitle } from "./schema.ts";

const SIGNED_FOR_MS = 3_600_000;

/** Below `/media/<asset>/`: the same for as long as there is the track, whatever it says. */
export const subtitleFile = ({ id }: Pick<SubtitleRow, "id">) => `subtitles/${id}.vtt`;

/** A playlist of the text alone, as a master playlist wants it (RFC 8216, 4.3.4.1). */
export const subtitleList = ({ id }: Pick<SubtitleRow, "id">) => `subtitles/${id}.m3u8`;

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

/** The record that clients see. */
export const shown = async (app: App, asset: AssetRow, row: SubtitleRow) =>
  toSubtitle(row, await subtitleUrl(app, asset, row));

/** The address may be a credential: for a repeated request it is made anew, not kept. */
export const refreshedUrl: Route["idempotent"] = {
  secretFields: ["url"],
  async restore({ app, caller, params }, body) {
    const { video_asset_id } = params as { video_asset_id: number };
    const { id } = body as { id: number };
    const found = await requireSubtitle(app.db, caller, { video_asset_id, id }).catch(() => null);
    return { ...(body as object), url: found && (await subtitleUrl(app, found.asset, found.subtitle)) };
  },
};

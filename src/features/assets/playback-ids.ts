import * as v from "valibot";
import { PlaybackPolicy } from "#platform/http/schemas.ts";
import type { AssetRow, PlaybackId } from "#storage/db/schema.ts";
import { publicId } from "./urls.ts";

export const PlaybackIdRecord = v.pipe(
  v.object({
    id: v.pipe(v.string(), v.description("In public URLs of the asset, instead of its number or `external_id`")),
    policy: v.pipe(PlaybackPolicy, v.description("Applies to URLs with this id")),
  }),
  v.title("PlaybackId"),
);

/** All ids under which an asset is played. The first one is its `vid_` id, else its number. */
export const playbackIdsOf = (asset: AssetRow): PlaybackId[] => [
  { id: publicId({ id: asset.id, externalId: asset.externalId }), policy: asset.playbackPolicy },
  ...asset.playbackIds,
];

import * as v from "valibot";
import type { App } from "#app.ts";
import { iso } from "#lib/base";
import { RecordIdInPath } from "#platform/http/parameters.ts";
import { oneOf, PathId } from "#platform/http/schemas.ts";
import { AssetId, CreatedAt, HeightField, RecordId, UpdatedAt, WidthField } from "#protocol/record-fields.ts";
import type { AssetRow, StaticRenditionRow } from "#storage/db/schema.ts";
import { fileOf, meantBy, STATIC_NAMES } from "../assets/static-names.ts";
import { staticStatus } from "../assets/static-rendition-events.ts";
import { mediaUrl } from "../assets/urls.ts";
import { STATIC } from "./deliver.ts";

export const AssetParams = v.object({ id: RecordIdInPath });
export const RenditionParams = v.object({
  id: RecordIdInPath,
  rendition_id: v.pipe(PathId, v.description("Id of the static rendition")),
});

const StaticName = v.pipe(
  oneOf(STATIC_NAMES),
  v.description(
    "`highest`, `audio-only`, a short side such as `720p`, or the largest of at most one: `capped-1080p`, `high` (1080), `medium` (540), `low` (360)",
  ),
);
export const StaticRenditionWrite = v.pipe(v.object({ name: StaticName }), v.title("StaticRenditionWrite"));

export const StaticRendition = v.pipe(
  v.object({
    id: RecordId,
    asset_id: AssetId,
    name: StaticName,
    file: v.pipe(v.string(), v.description("File name in `url`: MP4 with video, M4A without")),
    status: v.pipe(
      v.picklist(["preparing", "ready", "skipped", "errored"]),
      v.description("`skipped`: the asset has no such rendition"),
    ),
    width: v.nullable(WidthField),
    height: v.nullable(HeightField),
    bandwidth: v.pipe(v.nullable(v.number()), v.description("bit/s at most, of video and audio")),
    bytes: v.pipe(
      v.nullable(v.number()),
      v.description("Size of the file, as its download says; null until it is ready, or while it is unknown"),
    ),
    url: v.pipe(v.string(), v.description("Plays once it is ready; that of a signed asset needs a token")),
    created_at: CreatedAt,
    updated_at: UpdatedAt,
  }),
  v.title("StaticRendition"),
);

/** A static rendition as the API shows it. `bytes` of its file, where it has one: from `bytesOf`. */
export function toStaticRendition(
  app: App,
  asset: AssetRow,
  { id, name, createdAt, updatedAt }: Pick<StaticRenditionRow, "id" | "name" | "createdAt" | "updatedAt">,
  bytes: number | null,
): v.InferInput<typeof StaticRendition> {
  const status = staticStatus(name, asset);
  const meant = status === "ready" ? meantBy(name, asset) : null;
  return {
    id,
    asset_id: asset.id,
    name,
    file: fileOf(name),
    status,
    width: meant?.width ?? null,
    height: meant?.height ?? null,
    bandwidth: meant?.bandwidth ?? null,
    bytes: meant && bytes,
    url: mediaUrl(app.baseUrl(), asset, STATIC + fileOf(name), null),
    created_at: iso(createdAt),
    updated_at: iso(updatedAt),
  };
}

import type { AssetRow } from "../../../storage/db/schema.ts";

type Named = Pick<AssetRow, "id" | "externalId">;

/** The id in public URLs: the `vid_` id, else the number. A client's own id is not used. */
export const publicId = (asset: Named) => (asset.externalId.startsWith("vid_") ? asset.externalId : String(asset.id));

/** The path of the base URL without its last slash, for servers with a path prefix; else "". */
export const basePath = (baseUrl: string) => new URL(baseUrl).pathname.replace(/\/$/, "");

/** With a playback token, if there is one. */
export const withToken = (address: string, token: string | null) =>
  token === null ? address : `${address}?token=${token}`;

/** A URL below `/media/<id>/`. With `token` it needs no other credential. */
export const mediaUrl = (baseUrl: string, asset: Named, file: string, token: string | null) =>
  withToken(`${baseUrl}/media/${publicId(asset)}/${file}`, token);
export const pageUrl = (baseUrl: string, page: "watch" | "embed", asset: Named, token: string | null) =>
  withToken(`${baseUrl}/${page}/${publicId(asset)}`, token);

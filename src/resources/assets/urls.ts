import type { AssetRow } from "../../../storage/db/schema.ts";

type Named = Pick<AssetRow, "id" | "externalId">;

/** How the public pages and media name an asset: its `vid_` id, else its number. A client's own id is its tenant's affair. */
export const publicId = (asset: Named) => (asset.externalId.startsWith("vid_") ? asset.externalId : String(asset.id));

/** The path of the base URL without its last slash, for servers behind a path prefix; else "". */
export const basePath = (baseUrl: string) => new URL(baseUrl).pathname.replace(/\/$/, "");

const withToken = (address: string, token: string | null) => (token === null ? address : `${address}?token=${token}`);

/** An address below `/media/<id>/`. With `token` it works as it is. */
export const mediaUrl = (baseUrl: string, asset: Named, file: string, token: string | null) =>
  withToken(`${baseUrl}/media/${publicId(asset)}/${file}`, token);
export const pageUrl = (baseUrl: string, page: "watch" | "embed", asset: Named, token: string | null) =>
  withToken(`${baseUrl}/${page}/${publicId(asset)}`, token);

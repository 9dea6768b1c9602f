import type { AssetRow } from "#storage/db/schema.ts";

/**
 * An asset as one of its playback ids presents it: with the policy of that id, which is the one in its URLs and tokens.
 * Without `playbackId` it is the first one.
 */
export type PublicAsset = AssetRow & { playbackId?: string };

type Named = Pick<PublicAsset, "id" | "externalId" | "playbackId">;

/** The id in public URLs: the `vid_` id, else the number. A client's own id is not used. */
export const publicId = ({ id, externalId, playbackId }: Named) =>
  playbackId ?? (externalId.startsWith("vid_") ? externalId : String(id));

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

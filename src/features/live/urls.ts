import { LIVE_MANIFEST } from "#live/playlists/names.ts";
import { withToken } from "../assets/urls.ts";
import { pathOf } from "./schema.ts";

/** File name of the multivariant playlist of a channel. */
export const LIVE_MASTER = "master.m3u8";

/** The multivariant playlist of a channel. With `token` it needs no other credential. */
export const liveUrl = (baseUrl: string, channel: string, token: string | null) =>
  withToken(`${baseUrl}/${pathOf(channel)}/${LIVE_MASTER}`, token);
/** The DASH manifest of a channel. */
export const liveDashUrl = (baseUrl: string, channel: string, token: string | null) =>
  withToken(`${baseUrl}/${pathOf(channel)}/${LIVE_MANIFEST}`, token);
/** A file of a channel, with parameters. */
export function liveFileUrl(
  baseUrl: string,
  channel: string,
  { file, query, token }: { file: string; query: URLSearchParams; token: string | null },
): string {
  const url = new URL(`${baseUrl}/${pathOf(channel)}/${file}`);
  url.search = query.toString();
  if (token !== null) url.searchParams.set("token", token);
  return url.href;
}
/** The current frame of a channel. */
export const livePosterUrl = (baseUrl: string, channel: string, token: string | null) =>
  withToken(`${baseUrl}/${pathOf(channel)}/thumbnail.jpg`, token);
export const livePageUrl = (baseUrl: string, page: "watch" | "embed", channel: string, token: string | null) =>
  withToken(`${baseUrl}/${page}/${pathOf(channel)}`, token);

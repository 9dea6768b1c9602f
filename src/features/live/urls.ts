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
export const livePageUrl = (baseUrl: string, page: "watch" | "embed", channel: string, token: string | null) =>
  withToken(`${baseUrl}/${page}/${pathOf(channel)}`, token);

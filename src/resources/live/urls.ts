import { withToken } from "../assets/urls.ts";
import { pathOf } from "./schema.ts";

/** The multivariant playlist of a channel. With `token` it needs no other credential. */
export const liveUrl = (baseUrl: string, channel: string, token: string | null) =>
  withToken(`${baseUrl}/${pathOf(channel)}/master.m3u8`, token);
export const livePageUrl = (baseUrl: string, page: "watch" | "embed", channel: string, token: string | null) =>
  withToken(`${baseUrl}/${page}/${pathOf(channel)}`, token);

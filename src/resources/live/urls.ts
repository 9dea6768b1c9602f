import { withToken } from "../assets/urls.ts";
import { pathOf } from "./schema.ts";

/** The multivariant playlist of a channel. With `token` it needs no other credential. */
export const liveUrl = (baseUrl: string, channel: string, token: string | null) =>
  withToken(`${baseUrl}/${pathOf(channel)}/master.m3u8`, token);
export const liveEmbedUrl = (baseUrl: string, channel: string, token: string | null) =>
  withToken(`${baseUrl}/embed/${pathOf(channel)}`, token);

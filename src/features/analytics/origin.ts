import type { IncomingMessage } from "node:http";
import { LRUCache } from "lru-cache";
import { type App, forApp } from "#app.ts";
import { truncatedAddress } from "#lib/network";
import { trustedProxies } from "#platform/http/client-address.ts";
import { type Device, deviceOf } from "./device.ts";

/** Where a view came from, as far as its requests say. Empty texts where that is unknown. */
export type Origin = {
  device: Device;
  /** ISO 3166-1, two letters. */
  country: string;
  /** Host of the page that the player is on, or that led to the server's own pages; without path and port. */
  referrer: string;
  /** A part of the viewer's address, where the settings say that; else null. */
  network: string | null;
};

type Request = { headers: Headers; address: string; incoming?: IncomingMessage | undefined };

/** Longer texts than browsers send are not read. */
const MAX_REFERRER = 2048;
/** RFC 1035, 2.3.4. */
const MAX_HOST = 253;
/** What CDNs write for an unknown country. */
const UNKNOWN = new Set(["XX", "ZZ"]);

/** The origin of a request by its headers, which are not stored themselves. */
export const originOf = (app: App, request: Request): Origin => ({
  device: deviceOf(request.headers),
  country: countryOf(app, request),
  referrer: referrerOf(app, request.headers.get("referer")),
  network: app.config.analytics_ip === "truncate" ? truncatedAddress(request.address) : null,
});

const isProxy = forApp((app) => trustedProxies(app.config.trusted_proxies));

/** By the header of the settings, when a trusted proxy sent the request: anyone else could write anything. */
function countryOf(app: App, { headers, incoming }: Request): string {
  const header = app.config.country_header;
  const peer = incoming?.socket.remoteAddress;
  if (header === undefined || peer === undefined || !isProxy(app)(peer)) return "";
  const country = (headers.get(header) ?? "").trim().toUpperCase();
  return /^[A-Z]{2}$/.test(country) && !UNKNOWN.has(country) ? country : "";
}

const hosts = new LRUCache<string, string>({
  max: 1000,
  maxSize: 200_000,
  sizeCalculation: (_, key) => key.length + 1,
});

/** The host of a URL, or of a text that is a host. Empty for anything else, and for the server itself. */
export function referrerOf(app: App, text: string | null | undefined): string {
  if (!text || text.length > MAX_REFERRER) return "";
  const host = hosts.get(text) ?? hostOf(text);
  hosts.set(text, host);
  return host === own(app).host ? "" : host;
}

const own = forApp((app) => ({ host: hostOf(app.baseUrl()) }));

function hostOf(text: string): string {
  const url = URL.parse(text.includes("://") ? text : `https://${text}`);
  const host = url?.hostname.toLowerCase() ?? "";
  return host.length <= MAX_HOST && /^[a-z0-9_.:[\]-]+$/.test(host) ? host : "";
}

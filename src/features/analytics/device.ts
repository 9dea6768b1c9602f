export const DEVICES = ["phone", "tablet", "desktop", "tv", "other"] as const;
export type Device = (typeof DEVICES)[number];

/** Browsers send less; the rest is not read. */
const MAX_CHARS = 512;

/** Parts of the User-Agent, in this order: that of a TV or headset also names the system of a desktop or phone. */
const PARTS: readonly [Device, readonly string[]][] = [
  ["other", ["bot", "crawler", "spider", "oculusbrowser", "pico"]],
  [
    "tv",
    (
      "smarttv,smart-tv,googletv,google tv,android tv,androidtv,appletv,apple tv,hbbtv,netcast,web0s,webos.tv,tizen tv," +
      "bravia,crkey,roku,; aft,viera,playstation,xbox"
    ).split(","),
  ],
  ["tablet", ["ipad", "tablet", "kindle", "silk/"]],
  ["phone", ["iphone", "ipod", "mobile", "windows phone"]],
  // Android without "Mobile".
  ["tablet", ["android"]],
  ["desktop", ["windows nt", "macintosh", "x11", "cros"]],
];

/**
 * The class of the device that sent a request, from the User-Agent and, where a browser shortens it, the client hint for
 * phones. The headers are not stored. An iPad that asks for desktop sites is a desktop.
 */
export function deviceOf(headers: Headers): Device {
  if (headers.get("sec-ch-ua-mobile") === "?1") return "phone";
  const agent = (headers.get("user-agent") ?? "").slice(0, MAX_CHARS).toLowerCase();
  return PARTS.find(([, parts]) => parts.some((part) => agent.includes(part)))?.[0] ?? "other";
}

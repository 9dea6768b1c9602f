const TYPES: Record<string, string> = {
  m3u8: "application/vnd.apple.mpegurl",
  mpd: "application/dash+xml",
  m4s: "video/iso.segment",
  mp4: "video/mp4",
  m4a: "audio/mp4",
  m4v: "video/mp4",
  ts: "video/mp2t",
  aac: "audio/aac",
  vtt: "text/vtt; charset=utf-8",
  jpg: "image/jpeg",
  jpeg: "image/jpeg",
  png: "image/png",
  gif: "image/gif",
  webp: "image/webp",
  json: "application/json",
};

/** Media type by file extension. Unknown types are octet streams: a tenant's file is never served as a page. */
export const contentTypeOf = (name: string) =>
  TYPES[name.slice(name.lastIndexOf(".") + 1).toLowerCase()] ?? "application/octet-stream";

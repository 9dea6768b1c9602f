/** Where to publish to (RTMP 1.0, 7.2.1.1 and 7.2.2.6). */
export type PublishUrl = {
  isTls: boolean;
  /** As in a parsed URL: IPv6 in brackets, names in lower case and ASCII. */
  hostname: string;
  port: number;
  /** First part of the path. Not empty. */
  app: string;
  /** Without the stream key; a default port is omitted. */
  href: string;
};

export const DEFAULT_PORT = { rtmp: 1935, rtmps: 443 } as const;
const PRINTABLE = /^[\x21-\x7e]+$/;

/** The URL cannot be published to. Its message is for the person who entered it. */
export class PublishUrlInvalid extends Error {}

/**
 * Reads `rtmp://host[:port]/app` or `rtmps://…`. With a `streamKey` of null the last part of the path, with its query, is the
 * stream key. Throws PublishUrlInvalid.
 * @example
 * const { hostname, port, app, streamKey } = readPublishUrl("rtmp://example.com/live/key", null);
 * [hostname, port, app, streamKey] // => ["example.com", 1935, "live", "key"]
 */
export function readPublishUrl(text: string, streamKey: string | null): PublishUrl & { streamKey: string } {
  const separator = text.indexOf("://");
  const scheme = text.slice(0, Math.max(0, separator)).toLowerCase();
  if (scheme !== "rtmp" && scheme !== "rtmps") throw new PublishUrlInvalid("must be an rtmp or rtmps URL");
  if (!PRINTABLE.test(text) || text.includes("#"))
    throw new PublishUrlInvalid("contains characters that are not valid");
  const rest = text.slice(separator + 3);
  const slash = rest.indexOf("/");
  const authority = slash === -1 ? rest : rest.slice(0, slash);
  const path = slash === -1 ? "" : rest.slice(slash + 1);
  const { hostname, port } = hostOf(authority, DEFAULT_PORT[scheme]);
  const { app, key } = split(path, streamKey);
  const shown = port === DEFAULT_PORT[scheme] ? hostname : `${hostname}:${port}`;
  return { isTls: scheme === "rtmps", hostname, port, app, href: `${scheme}://${shown}/${app}`, streamKey: key };
}

/** As the URL parser reads it for https: it normalizes all spellings of an address. */
function hostOf(authority: string, defaultPort: number): { hostname: string; port: number } {
  // Each of the two omits its own default port.
  const [plain, secure] = ["http", "https"].map((scheme) => `${scheme}://${authority}/`);
  if (!plain || !secure || authority.includes("?") || !URL.canParse(secure))
    throw new PublishUrlInvalid("must have a host, as rtmp://host/app");
  const url = new URL(secure);
  if (url.username !== "" || url.password !== "" || authority.includes("@"))
    throw new PublishUrlInvalid("contains a user name or password");
  const port = url.port || new URL(plain).port;
  if (port === "0") throw new PublishUrlInvalid("has the port 0");
  return { hostname: url.hostname, port: port === "" ? defaultPort : Number(port) };
}

function split(path: string, streamKey: string | null): { app: string; key: string } {
  const query = path.indexOf("?");
  let app = query === -1 ? path : path.slice(0, query);
  let key = streamKey;
  if (key === null) {
    const at = app.lastIndexOf("/");
    key = at === -1 ? "" : app.slice(at + 1);
    if (key === "")
      throw new PublishUrlInvalid("must end with the stream key, as rtmp://host/app/key, or send it in stream_key");
    if (query !== -1) key += path.slice(query);
    app = app.slice(0, at);
  } else if (query !== -1) throw new PublishUrlInvalid("has a query; append it to stream_key, where it stays secret");
  while (app.endsWith("/")) app = app.slice(0, -1);
  if (app === "") throw new PublishUrlInvalid("must have an application, as rtmp://host/app");
  return { app, key };
}

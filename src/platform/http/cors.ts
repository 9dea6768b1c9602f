/** What pages of other origins may send to a route, and read of its responses. */
export type Cors = { allowHeaders: string; exposeHeaders: string };

/** In `allowHeaders`: whatever a page wants to send. */
export const ANY_HEADER = "*";

/** The headers for playlists, manifests and media: players send headers of their own, for access or statistics. */
export const MEDIA_CORS: Cors = {
  allowHeaders: ANY_HEADER,
  exposeHeaders: "ETag, Content-Length, Content-Range, Accept-Ranges, Retry-After, Location",
};

/** Any origin is allowed: cookies are not credentials here, so a page can do no more than any HTTP client. */
export const corsHeaders = ({ exposeHeaders }: Cors): Record<string, string> => ({
  "access-control-allow-origin": "*",
  "access-control-expose-headers": exposeHeaders,
});

/** Headers of the response to a preflight request (Fetch, 3.2.2). `requested`: its Access-Control-Request-Headers. */
export const preflightHeaders = (cors: Cors, methods: string, requested: string | null = null): Headers => ({
  ...corsHeaders(cors),
  "access-control-allow-methods": methods,
  "access-control-allow-headers": cors.allowHeaders === ANY_HEADER ? namesIn(requested) : cors.allowHeaders,
  "access-control-max-age": "7200",
  ...(cors.allowHeaders === ANY_HEADER && { vary: "access-control-request-headers" }),
});

type Headers = Record<string, string>;
/** Browsers send far less. */
const MAX_CHARACTERS = 2000;
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

/** Browsers do not count Authorization in `*` (Fetch, 4.9), so the requested names are repeated. */
function namesIn(requested: string | null): string {
  const names = (requested ?? "").slice(0, MAX_CHARACTERS).split(",");
  const valid = names.map((name) => name.trim()).filter((name) => TOKEN.test(name));
  return valid.length > 0 ? valid.join(", ") : ANY_HEADER;
}

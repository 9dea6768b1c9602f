/** What pages of other origins may send to a route, and read of its responses. */
export type Cors = { allowHeaders: string; exposeHeaders: string };

/** Any origin is allowed: cookies are not credentials here, so a page can do no more than any HTTP client. */
export const corsHeaders = ({ exposeHeaders }: Cors): Record<string, string> => ({
  "access-control-allow-origin": "*",
  "access-control-expose-headers": exposeHeaders,
});

/** Headers of the response to a preflight request (Fetch, 3.2.2). */
export const preflightHeaders = (cors: Cors, methods: string): Record<string, string> => ({
  ...corsHeaders(cors),
  "access-control-allow-methods": methods,
  "access-control-allow-headers": cors.allowHeaders,
  "access-control-max-age": "7200",
});

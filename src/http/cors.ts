/** What pages of other origins may send to a route and read of its answers. */
export type Cors = { allowHeaders: string; exposeHeaders: string };

/** Any origin: no cookie is a credential here, so a page can do no more than its own server could. */
export const corsHeaders = ({ exposeHeaders }: Cors): Record<string, string> => ({
  "access-control-allow-origin": "*",
  "access-control-expose-headers": exposeHeaders,
});

/** Of the answer to what a browser asks before it sends (Fetch, 3.2.2). */
export const preflightHeaders = (cors: Cors, methods: string): Record<string, string> => ({
  ...corsHeaders(cors),
  "access-control-allow-methods": methods,
  "access-control-allow-headers": cors.allowHeaders,
  "access-control-max-age": "7200",
});

import * as v from "valibot";
import { MEDIA_CORS } from "#platform/http/cors.ts";
import { Reply, type Route, route } from "#platform/http/route.ts";
import { basePath } from "../assets/urls.ts";
import type { PlaybackTokens } from "../playback/token.ts";
import { LiveState, liveState, requireWatchable } from "./live-state.ts";

export const liveStateRoutes = (tokens: PlaybackTokens): Route[] => [
  route({
    method: "GET",
    path: "/live/:channel/state.json",
    credential: "none",
    tag: "Live",
    hidden: true,
    summary: "Get the state of a channel, which the player polls",
    params: v.object({ channel: v.string() }),
    // The element is embedded in pages of other sites.
    cors: MEDIA_CORS,
    responses: { 200: LiveState },
    errors: { 403: ["playback_token_required", "playback_token_invalid", "tenant_suspended"] },
    async handle({ app, params, url, headers }) {
      const token = url.searchParams.get("token");
      const channel = await requireWatchable(app, tokens.of(headers), { ...params, token });
      const state = await liveState(app, channel, { token, basePath: basePath(app.baseUrl()) });
      return new Reply(200, state, { "cache-control": "no-store" });
    },
  }),
];

import * as v from "valibot";
import { route } from "#platform/http/route.ts";
import { isTranscriptionConfigured } from "./transcribers.ts";
import { isTranslationConfigured } from "./translate.ts";

/** What the operator has configured, so that a client does not offer what can only fail. */
export const featureRoutes = [
  route({
    method: "GET",
    path: "/api/v1/features",
    tag: "Subtitles",
    operationId: "getFeatures",
    summary: "Get which optional features of subtitles this server has",
    responses: {
      200: v.pipe(
        v.object({
          translation: v.pipe(v.boolean(), v.description("Whether a translation service is configured")),
          captions: v.pipe(v.boolean(), v.description("Whether the server or a worker can transcribe")),
        }),
        v.title("Features"),
      ),
    },
    handle: async ({ app }) => ({
      translation: await isTranslationConfigured(app),
      captions: await isTranscriptionConfigured(app),
    }),
  }),
];

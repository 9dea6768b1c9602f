import * as v from "valibot";
import { HttpError, notFound } from "#lib/base";
import { type Route, route } from "#platform/http/route.ts";
import { serveObject } from "#platform/http/serve-object.ts";
import { type InstalledModel, installedModels, selectedModel } from "#platform/outbound/transcribe/whisper/store.ts";
import { describedAs } from "#protocol/fields.ts";
import { Sha256Field } from "#protocol/record-fields.ts";
import { SpeechModel } from "#protocol/speech-model.ts";
import { openFile } from "#storage/objects/read-file.ts";
import type { ObjectStore } from "#storage/objects/store.ts";

const base = "/api/v1/worker/speech_models";
const common = { method: "GET", credential: "worker", tag: "Transcoding jobs" } as const;
const MEDIA_TYPE = "application/octet-stream";

/** Routes from which workers get the model of VODBOX_TRANSCRIBE=whisper. */
export const speechModelRoutes: Route[] = [
  route({
    ...common,
    path: `${base}/selected`,
    operationId: "getSpeechModel",
    summary: "Get the name and checksum of the model with which workers create captions",
    responses: { 200: SpeechModel },
    errors: { 503: ["transcription_not_configured"] },
    handle({ app: { config } }) {
      const model = config.transcribe === "whisper" ? selectedModel(config.data_dir, config.whisper_model) : null;
      if (!model)
        throw new HttpError(
          503,
          "transcription_not_configured",
          config.transcribe === "whisper"
            ? "The server has no speech model; install one there with `vodbox captions install MODEL`."
            : "The server does not use whisper (VODBOX_TRANSCRIBE).",
        );
      const { name, bytes, sha256 } = model;
      return { name, bytes, sha256, url: `${base}/${sha256}` };
    },
  }),
  route({
    ...common,
    path: `${base}/:sha256`,
    operationId: "downloadSpeechModel",
    summary: "Download a model by its checksum; supports ranges",
    params: v.object({ sha256: describedAs(Sha256Field, v.pipe(v.string(), v.regex(/^[0-9a-f]{64}$/))) }),
    produces: [MEDIA_TYPE],
    responses: { 200: v.string(), 206: v.string() },
    errors: { 404: ["not_found"], 416: ["range_not_satisfiable"] },
    async handle({ app, params, headers, method }) {
      const model = installedModels(app.config.data_dir).find(({ sha256 }) => sha256 === params.sha256);
      return serveObject({
        objects: storeOf(model ?? notFound("model")),
        key: params.sha256,
        method,
        headers,
        contentType: MEDIA_TYPE,
        cacheControl: "private, no-store",
      });
    },
  }),
];

/** The file of a model, as an object. */
const storeOf = ({ path, sha256 }: InstalledModel): Pick<ObjectStore, "head" | "get"> => {
  const opened = async () => {
    const file = await openFile(path);
    if (!file) return null;
    const info = {
      key: sha256,
      bytes: Number(file.stat.size),
      etag: `"${sha256}"`,
      modifiedAt: new Date(Number(file.stat.mtimeMs)),
    };
    return { file, info };
  };
  return {
    async head() {
      const found = await opened();
      await found?.file.close();
      return found?.info ?? null;
    },
    async get(_, range) {
      const found = await opened();
      if (!found) return null;
      const { file, info } = found;
      return { info, body: file.read(range ?? { start: 0, end: info.bytes - 1 }) };
    },
  };
};

import * as v from "valibot";

/** The model with which workers create captions. */
export const SpeechModel = v.object({
  name: v.pipe(v.string(), v.description("Name of the model, such as `small`")),
  bytes: v.pipe(v.number(), v.integer(), v.minValue(1), v.description("Size of its file")),
  sha256: v.pipe(v.string(), v.regex(/^[0-9a-f]{64}$/), v.description("Checksum of its file")),
  url: v.pipe(v.string(), v.description("Path of its file on this server")),
});
export type SpeechModel = v.InferOutput<typeof SpeechModel>;

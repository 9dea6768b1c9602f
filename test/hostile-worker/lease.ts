import type { TestApp } from "../support/app.ts";
import type { Answer } from "../support/client.ts";
import { callback, next, putArtifacts, uploaded } from "../support/flow.ts";

/** What a job of 4 seconds reports. */
export const MEDIA = { duration_seconds: 4, width: 640, height: 360, frame_rate: 30, renditions: [] };

/** A leased job of the tenant of `key`. */
export async function leased(app: TestApp, key: string) {
  const made = await uploaded(app, key, { playback_policy: "public" });
  for (;;) {
    const { body } = await next(app);
    if (body.job.id === made.job.id) return { ...made, contract: body };
  }
}

/** `objects` replace, or are added to, small placeholders of all that a job writes. */
export async function completed(
  app: TestApp,
  key: string,
  { objects = {}, fields = {} }: { objects?: Record<string, string>; fields?: Record<string, unknown> } = {},
): Promise<{ asset: any; contract: any; answer: Answer }> {
  const { asset, contract } = await leased(app, key);
  const { prefix } = contract.outputs;
  const named = Object.fromEntries(Object.entries(objects).map(([name, text]) => [prefix + name, text]));
  const paths = await putArtifacts(app, contract, named);
  const answer = await callback(app, contract, "complete", { ...paths, media: MEDIA, ...fields });
  return { asset, contract, answer };
}

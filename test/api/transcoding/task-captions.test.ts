import { beforeEach, expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import { expectError } from "#test/support/error.ts";
import { callback, putArtifacts, uploaded } from "#test/support/flow.ts";
import { VTT } from "#test/support/subtitles.ts";
import { finish, nextTask, runAll, runNext, written } from "#test/support/tasks.ts";

let app: TestApp;
let key: string;
beforeEach(async () => {
  app = await testApp({ max_attempts: 3 });
  key = await app.key((await app.tenant()).id);
});
const types = async () => (await app.newEvents()).map((event) => event.type);
const job = async (id: number) => (await app.as(key).getJob(id)).body;
const tracks = async (id: number) => (await app.as(key).listSubtitles(id)).body;

/** An upload that requests captions, with its audio task leased. */
async function begun(fields: Record<string, unknown>) {
  const made = await uploaded(app, key, fields);
  const plan = await runNext(app);
  expect(plan.outputs.subtitle_paths).toEqual({});
  const { body: audio } = await nextTask(app);
  await app.newEvents();
  return { ...made, audio };
}
const complete = (contract: any, fields: Record<string, unknown>) =>
  callback(app, contract, "complete", { written: written(contract), ...fields });

test("captions are created by the audio task, and published when the job is complete", async () => {
  const { job: made, asset, audio } = await begun({ captions: ["en", "de"] });
  const { prefix, subtitle_paths } = audio.outputs;
  expect(subtitle_paths).toEqual({ en: `${prefix}captions/en.vtt`, de: `${prefix}captions/de.vtt` });
  const { body: chunk } = await nextTask(app);
  expect(chunk.outputs.subtitle_paths).toEqual({});
  await finish(app, chunk);
  await putArtifacts(app, audio, { [subtitle_paths.en]: VTT });
  const captions = { subtitle_paths: { en: subtitle_paths.en }, caption_errors: { de: "No speech was recognized." } };
  expect((await complete(audio, captions)).status).toBe(200);
  expect(await tracks(asset.id)).toEqual([]);
  expect(await runAll(app)).toEqual(["chunk", "chunk", "chunk", "chunk", "images"]);
  expect(await types()).toEqual(["video.subtitle.ready", "video.asset.ready"]);
  expect(await tracks(asset.id)).toMatchObject([{ language: "en", source: "auto" }]);
  expect((await job(made.id)).caption_errors).toEqual({ de: "No speech was recognized." });
});

test("captions are checked when the audio task is complete", async () => {
  const { audio } = await begun({ captions: ["en"] });
  const path = audio.outputs.subtitle_paths.en;
  const refused = async (fields: Record<string, unknown>) =>
    expectError(await complete(audio, fields), 422, "invalid_transcoding_result");
  await refused({});
  await refused({ subtitle_paths: { en: path } });
  await refused({ subtitle_paths: { en: "tenants/1/assets/2/captions/en.vtt" } });
  await putArtifacts(app, audio, { [path]: "not a subtitle" });
  await refused({ subtitle_paths: { en: path } });
  await putArtifacts(app, audio, { [path]: VTT });
  expect((await complete(audio, { subtitle_paths: { en: path } })).status).toBe(200);
});

test("required captions that cannot be created fail the job", async () => {
  const { job: made, audio } = await begun({ captions: ["en"], captions_required: true });
  expect(audio.outputs.captions_required).toBe(true);
  expectError(
    await complete(audio, { caption_errors: { en: "No speech was recognized." } }),
    422,
    "invalid_transcoding_result",
  );
  const failure = { code: "caption_failed", message: "No speech was recognized.", retryable: false };
  await callback(app, audio, "fail", failure);
  expect(await job(made.id)).toMatchObject({ status: "failed", error: { code: "caption_failed" } });
});

test("a source without audio has none: the reason is stored, or the job fails where they are required", async () => {
  const optional = await uploaded(app, key, { captions: ["en"] });
  await runAll(app, { has_audio: false });
  expect(await job(optional.job.id)).toMatchObject({
    status: "completed",
    caption_errors: { en: "The source has no audio." },
  });
  const required = await uploaded(app, key, { captions: ["en"], captions_required: true });
  await runAll(app, { has_audio: false });
  expect(await job(required.job.id)).toMatchObject({
    status: "failed",
    error: { code: "caption_failed", message: "The source has no audio." },
  });
});

test("a source that is encoded in one run has its captions from that run", async () => {
  const made = await uploaded(app, key, { captions: ["en"] });
  await runNext(app, { uncuttable: "passthrough" });
  const { body: whole } = await nextTask(app);
  const { en } = whole.outputs.subtitle_paths;
  const paths = await putArtifacts(app, whole, { [en]: VTT });
  const media = { duration_seconds: 4, width: 640, height: 360, renditions: [] };
  expect((await callback(app, whole, "complete", { ...paths, subtitle_paths: { en }, media })).status).toBe(200);
  expect(await tracks(made.asset.id)).toMatchObject([{ language: "en" }]);
});

import { beforeEach, expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import { expectError } from "#test/support/error.ts";
import { callback, next, putArtifacts, uploaded } from "#test/support/flow.ts";
import { finish, nextTask, planned, runAll } from "#test/support/tasks.ts";

let app: TestApp;
let key: string;
beforeEach(async () => {
  app = await testApp({ max_attempts: 3 });
  key = await app.key((await app.tenant()).id);
  const body = { name: "titles", per_title: true, max_height: 720 };
  expect((await app.as(key).createEncodingProfile(body)).body).toMatchObject({ per_title: true });
});

const upload = () => uploaded(app, key, { encoding_profile: "titles" });
const rung = (name: string, max_bitrate: number, score: number) => ({
  name,
  width: 1280,
  height: 720,
  max_bitrate,
  buffer: max_bitrate * 1.5,
  crf: 26,
  score,
});
const TITLE = {
  source_width: 1280,
  source_height: 720,
  rungs: [rung("720p", 3_200_000, 93.1), rung("720p-2", 1_500_000, 84)],
};
const videoOf = (contract: any) => contract.encoding_spec.video;

test("the rungs that a plan chooses are in the contracts of all tasks that follow, and of the next attempt", async () => {
  const { job } = await upload();
  const { body: plan } = await nextTask(app);
  expect(videoOf(plan)).toMatchObject({ rate_control: "per_title", preset: "medium" });
  expect(videoOf(plan)).not.toHaveProperty("title");
  await finish(app, plan, { title: TITLE });
  const { body: first } = await nextTask(app);
  const { body: second } = await nextTask(app);
  for (const contract of [first, second]) expect(videoOf(contract).title).toEqual(TITLE);
  const fault = { code: "input_invalid", message: "It is damaged.", retryable: false };
  const failed = await callback(app, second, "fail", fault);
  expect(failed.status).toBe(200);
  const { body: whole } = await nextTask(app);
  expect(whole.task.kind).toBe("whole");
  expect(videoOf(whole).title).toEqual(TITLE);
  await callback(app, whole, "fail", fault);
  await app.as({ admin: app.admin }).retryJob(job.id);
  const { body: again } = await nextTask(app);
  expect(again.task.kind).toBe("plan");
  expect(videoOf(again).title).toEqual(TITLE);
});

test("a job that did not ask for a choice keeps its ladder", async () => {
  await uploaded(app, key, { encoding_profile: "fast" });
  await finish(app, (await nextTask(app)).body, { title: TITLE });
  expect(videoOf((await nextTask(app)).body)).not.toHaveProperty("title");
});

test.each([
  ["a score above 100", { ...TITLE, rungs: [{ ...TITLE.rungs[0], score: 101 }] }],
  ["a rung named like another directory", { ...TITLE, rungs: [{ ...TITLE.rungs[0], name: "audio" }] }],
  [
    "too many rungs",
    { ...TITLE, rungs: Array.from({ length: 21 }, (_, index) => rung(`720p-${index}`, 1_000_000, 50)) },
  ],
])("a plan with %s is refused", async (_, title) => {
  await upload();
  const { body: plan } = await nextTask(app);
  expectError(await callback(app, plan, "complete", { plan: planned({ title }) }), 422, "validation_failed");
});

test.each([
  [16, 8],
  [32_768, 16],
])("a choice for a source of %i x %i pixels, whose sides no rendition has, is kept", async (width, height) => {
  await upload();
  const title = { ...TITLE, source_width: width, source_height: height };
  await finish(app, (await nextTask(app)).body, { title });
  expect(videoOf((await nextTask(app)).body).title).toEqual(title);
});

test("renditions have the score that the worker reports, and others have none", async () => {
  const { asset } = await upload();
  const { body: contract } = await next(app);
  const prefix = contract.outputs.prefix;
  const rendition = (name: string, fields: object) => ({
    name,
    width: 1280,
    height: 720,
    frame_rate: 25,
    bandwidth: 900_000,
    codecs: "avc1.64001f",
    playlist_path: `${prefix}low/playlist.m3u8`,
    ...fields,
  });
  const media = {
    duration_seconds: 4,
    width: 1280,
    height: 720,
    frame_rate: 25,
    renditions: [rendition("720p", { score: 93.1 }), rendition("480p", { score: null }), rendition("360p", {})],
  };
  const result = { ...(await putArtifacts(app, contract)), media };
  const wrong = { ...result, media: { ...media, renditions: [rendition("720p", { score: 100.5 })] } };
  expectError(await callback(app, contract, "complete", wrong), 422, "validation_failed");
  expect((await callback(app, contract, "complete", result)).status).toBe(200);
  const scores = (all: { name: string; score?: number }[]) => all.map(({ name, score }) => [name, score]);
  const expected = [
    ["720p", 93.1],
    ["480p", undefined],
    ["360p", undefined],
  ];
  const shown = (await app.as(key).getAsset(asset.id)).body;
  expect(scores(shown.renditions)).toEqual(expected);
  const playback = await app.as(key).getPlayback(asset.id);
  expect(scores(playback.body.renditions)).toEqual(expected);
});

test("a job of such a profile completes in tasks", async () => {
  const { asset } = await upload();
  await finish(app, (await nextTask(app)).body, { title: TITLE });
  expect((await runAll(app)).at(-1)).toBe("images");
  expect((await app.as(key).getAsset(asset.id)).body.playback_status).toBe("ready");
});

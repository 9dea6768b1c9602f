import { beforeEach, describe, expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import { earlyResult, publishedEarly } from "#test/support/early.ts";
import { expectError } from "#test/support/error.ts";
import { callback, next, putArtifacts, type UploadFields, uploaded } from "#test/support/flow.ts";
import { subtitled, VTT } from "#test/support/subtitles.ts";
import { finish, nextTask, planned, runAll, written } from "#test/support/tasks.ts";

const MEDIA = { duration_seconds: 4, width: 640, height: 360, frame_rate: 30, renditions: [] };

let app: TestApp;
let key: string;
beforeEach(async () => {
  app = await testApp();
  key = await app.key((await app.tenant()).id);
});
const types = async () => (await app.newEvents()).map((event) => event.type);
const get = async (path: string) => (await app.call("GET", path, { key })).body;
const tracksOf = (id: number) => get(`/api/v1/assets/${id}/subtitles?include=content`);
const asset = (id: number) => get(`/api/v1/assets/${id}`);

async function claimed(fields: UploadFields = {}) {
  const made = await uploaded(app, key, fields);
  const { body: contract } = await next(app);
  await app.newEvents();
  return { ...made, contract };
}

type Tracks = Record<string, { path?: string; language?: string | null; text?: string }>;

/** Puts the texts of tracks, and completes the job with them. */
async function complete(contract: any, tracks: Tracks, fields: object = {}) {
  const named = Object.entries(tracks).map(
    ([service, { path = `${contract.outputs.prefix}closed-captions/${service}.vtt`, language, text = VTT }]) => ({
      service,
      path,
      text,
      reported: { path, ...(language !== undefined && { language }) },
    }),
  );
  const own = named.filter(({ path }) => path.startsWith(contract.outputs.prefix));
  const paths = await putArtifacts(app, contract, Object.fromEntries(own.map(({ path, text }) => [path, text])));
  const reported = Object.fromEntries(named.map(({ service, reported }) => [service, reported]));
  const closed_captions = { tracks: reported, ...fields };
  return callback(app, contract, "complete", { ...paths, media: MEDIA, closed_captions });
}

test("closed captions of the first encode are subtitles, ready before the asset", async () => {
  const made = await claimed();
  expect(made.contract.outputs.read_closed_captions).toBe(true);
  const before = (await asset(made.asset.id)).storage_bytes;
  expect((await complete(made.contract, { cc1: {}, cc3: {}, service2: { language: "es-mx" } })).status).toBe(200);
  expect(await types()).toEqual([
    ...["video.subtitle.ready", "video.subtitle.ready", "video.subtitle.ready"],
    ...["video.asset.ready"],
  ]);
  expect(await tracksOf(made.asset.id)).toMatchObject([
    { language: "und", label: "CC1", source: "upload", status: "ready", content: VTT, is_default: false },
    { language: "und-x-cc3", label: "CC3", source: "upload" },
    { language: "es-MX", source: "upload" },
  ]);
  expect(await asset(made.asset.id)).toMatchObject({ warnings: [] });
  expect((await asset(made.asset.id)).storage_bytes).toBeGreaterThan(before + 3 * VTT.length);
});

test("an asset that is encoded again is not asked for them, and keeps what it has", async () => {
  const made = await claimed();
  await complete(made.contract, { cc1: {} });
  const [{ id }] = await tracksOf(made.asset.id);
  await app.as(key).deleteSubtitle(made.asset.id, id);
  await app.as(key).reencodeAsset(made.asset.id, {});
  const { body: again } = await next(app);
  expect(again.outputs).not.toHaveProperty("read_closed_captions");
  expect((await complete(again, { cc1: {} }, { failed: true })).status).toBe(200);
  expect(await tracksOf(made.asset.id)).toEqual([]);
});

test("a retry of the first encode is asked again", async () => {
  const { contract } = await claimed();
  await callback(app, contract, "fail", { code: "encode_failed", message: "No.", retryable: true });
  app.advance(3_600_000);
  const again = (await next(app)).body;
  expect(again.outputs.read_closed_captions).toBe(true);
});

test("a subtitle that exists in the language of captions is kept, next to them", async () => {
  const made = await claimed();
  await subtitled(app, key, made.asset.id, { language: "es", label: "Mine" });
  await complete(made.contract, { cc1: { language: "es" }, service1: { language: "und" } });
  expect((await tracksOf(made.asset.id)).map(({ language, label }: any) => [language, label])).toEqual([
    ["es", "Mine"],
    ["und", "CC1"],
    ["und-x-service1", "SERVICE1"],
  ]);
});

test("captions that cannot be read are a warning of an asset that plays", async () => {
  const made = await claimed();
  expect((await complete(made.contract, {}, { failed: true })).status).toBe(200);
  const warning = { code: "closed_captions_unreadable", message: expect.any(String) };
  expect(await asset(made.asset.id)).toMatchObject({ playback_status: "ready", error: null, warnings: [warning] });
});

const REFUSED: [string, Tracks, string][] = [
  ["a path below another prefix", { cc1: { path: "tenants/1/sources/x.vtt" } }, "invalid_transcoding_result"],
  ["no WebVTT", { cc1: { text: "1\n00:00 -> x" } }, "invalid_transcoding_result"],
  ["a text without cues", { cc1: { text: "WEBVTT\n" } }, "invalid_transcoding_result"],
  ["another service", { cc5: {} }, "validation_failed"],
  ["a service that is a path", { "../cc1": { path: "tenants/1/sources/x.vtt" } }, "validation_failed"],
  [
    "too many services",
    Object.fromEntries(Array.from({ length: 17 }, (_, index) => [`service${index + 1}`, {}])),
    "validation_failed",
  ],
];
test.each(REFUSED)("a completion with %s is refused, and another may follow", async (_, tracks, code) => {
  const made = await claimed();
  expectError(await complete(made.contract, tracks), 422, code);
  expect(await tracksOf(made.asset.id)).toEqual([]);
  expect((await complete(made.contract, { cc1: {} })).status).toBe(200);
});

test("at the limit of subtitles the others are left out", async () => {
  const made = await claimed();
  const languages = "ar bg cs da de el en es et fi fr he hi hu it ja ko nl pl".split(" ");
  for (const language of languages) await subtitled(app, key, made.asset.id, { language });
  expect((await complete(made.contract, { cc1: {}, cc2: {} })).status).toBe(200);
  const found = (await tracksOf(made.asset.id)).map(({ language }: any) => language);
  expect(found.toSorted()).toEqual([...languages, "und"].toSorted());
});

describe("of an encode in parts", () => {
  test.each([true, false])("one task reads them; with audio: %s", async (hasAudio) => {
    const { asset: made } = await uploaded(app, key);
    const { body: plan } = await nextTask(app);
    expect(plan.outputs).not.toHaveProperty("read_closed_captions");
    await callback(app, plan, "complete", { plan: planned({ has_audio: hasAudio }) });
    const asked: string[] = [];
    for (let { body: contract } = await nextTask(app); contract; { body: contract } = await nextTask(app)) {
      const { kind, chunk } = contract.task;
      const path = `${contract.outputs.prefix}closed-captions/cc1.vtt`;
      const closed_captions = { tracks: { cc1: { path } } };
      if (kind === "images") await finish(app, contract);
      else if (!contract.outputs.read_closed_captions) {
        // What was not asked for is not used.
        const other = { tracks: { cc2: { path: "tenants/1/sources/x.vtt" } } };
        const done = await callback(app, contract, "complete", { written: written(contract), closed_captions: other });
        expect(done.status).toBe(200);
      } else {
        asked.push(`${kind} ${chunk?.number ?? ""}`.trim());
        const send = () => callback(app, contract, "complete", { written: written(contract), closed_captions });
        expectError(await send(), 422, "invalid_transcoding_result");
        await putArtifacts(app, contract, { [path]: VTT });
        expect((await send()).status).toBe(200);
      }
    }
    expect(asked).toEqual([hasAudio ? "audio" : "chunk 0"]);
    expect(await tracksOf(made.id)).toMatchObject([{ language: "und", label: "CC1", content: VTT }]);
  });

  test("an asset that plays already is still asked, and has them when it is complete", async () => {
    const { id } = await publishedEarly(app, key);
    for (let { body: contract } = await nextTask(app); contract; { body: contract } = await nextTask(app)) {
      if (contract.task.kind === "images") {
        await finish(app, contract);
        continue;
      }
      const path = `${contract.outputs.prefix}closed-captions/cc1.vtt`;
      const isAsked = contract.outputs.read_closed_captions === true;
      if (isAsked) await putArtifacts(app, contract, { [path]: VTT });
      const reported = isAsked ? { closed_captions: { tracks: { cc1: { path } } } } : {};
      const done = await callback(app, contract, "complete", { ...earlyResult(contract), ...reported });
      expect(done.status).toBe(200);
    }
    expect(await tracksOf(id)).toMatchObject([{ language: "und", label: "CC1" }]);
  });

  test("a warning of a part is one of the asset", async () => {
    const { asset: made } = await uploaded(app, key);
    await finish(app, (await nextTask(app)).body);
    const { body: audio } = await nextTask(app);
    await callback(app, audio, "complete", { written: written(audio), closed_captions: { tracks: {}, failed: true } });
    await runAll(app);
    expect(await asset(made.id)).toMatchObject({ warnings: [{ code: "closed_captions_unreadable" }] });
  });
});

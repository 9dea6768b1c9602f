import { eq } from "drizzle-orm";
import { beforeEach, describe, expect, test } from "vitest";
import { assets, subtitles, tenants } from "#storage/db/schema.ts";
import { type TestApp, testApp } from "#test/support/app.ts";
import { expectError } from "#test/support/error.ts";
import { callback, next, putArtifacts, type UploadFields, uploaded } from "#test/support/flow.ts";
import { subtitled, VTT } from "#test/support/subtitles.ts";

const MEDIA = { duration_seconds: 4, width: 640, height: 360, frame_rate: 30, renditions: [] };
const GERMAN = "WEBVTT\n\n00:00:00.000 --> 00:00:02.000\nHallo\n";

let app: TestApp;
let key: string;
beforeEach(async () => {
  app = await testApp({ max_attempts: 3 });
  key = await app.key((await app.tenant()).id);
});
const types = async () => (await app.newEvents()).map((event) => event.type);

/** An upload that requests captions, and the lease of its job. */
async function claimed(fields: UploadFields) {
  const { asset, job, upload } = await uploaded(app, key, fields);
  const { body: contract } = await next(app);
  await app.newEvents();
  return { asset, job, upload, contract };
}

type Made = { texts?: Record<string, string>; errors?: Record<string, string> };

/** Puts texts as the captions of their languages and returns the body of a completion. */
async function made(contract: any, { texts = {}, errors }: Made) {
  const subtitle_paths = Object.fromEntries(
    Object.keys(texts).map((language) => [language, `${contract.outputs.prefix}captions/${language}.vtt`]),
  );
  const files = Object.fromEntries(Object.entries(texts).map(([tag, text]) => [subtitle_paths[tag], text]));
  const paths = await putArtifacts(app, contract, files as Record<string, string>);
  return { ...paths, subtitle_paths, ...(errors && { caption_errors: errors }), media: MEDIA };
}
const complete = async (contract: any, what: Made) => callback(app, contract, "complete", await made(contract, what));
const tracksOf = async (id: number) => (await app.as(key).listSubtitles(id, { include: "content" })).body;
const storageOf = async (id: number) => (await app.as(key).getAsset(id)).body.storage_bytes;

describe("the contract", () => {
  test("has a path for each requested language, once and canonical", async () => {
    const { upload, contract } = await claimed({ captions: ["en", "DE", "pt-br", "de"] });
    expect(upload).toMatchObject({ captions: ["en", "de", "pt-BR"], captions_required: false });
    const { prefix, subtitle_paths, captions_required } = contract.outputs;
    expect(subtitle_paths).toEqual({
      en: `${prefix}captions/en.vtt`,
      de: `${prefix}captions/de.vtt`,
      "pt-BR": `${prefix}captions/pt-BR.vtt`,
    });
    expect(captions_required).toBe(false);
  });

  test("says whether captions are required, and has none when none were requested", async () => {
    expect((await claimed({ captions: ["en"], captions_required: true })).contract.outputs.captions_required).toBe(
      true,
    );
    expect((await claimed({})).contract.outputs).toMatchObject({ subtitle_paths: {}, captions_required: false });
  });

  test("is the same with tus", async () => {
    const metadata = Object.entries({ filename: "a.mp4", captions: "en, de", captions_required: "true" })
      .map(([name, value]) => `${name} ${Buffer.from(value).toString("base64")}`)
      .join(",");
    const headers = { "tus-resumable": "1.0.0", "upload-length": "5", "upload-metadata": metadata };
    const created = await app.call("POST", "/api/v1/uploads/tus", { key, headers });
    expect(created.status).toBe(201);
    const id = created.headers.get("location")?.split("/").at(-1);
    const { body } = await app.as(key).getUpload(id);
    expect(body).toMatchObject({ captions: ["en", "de"], captions_required: true });
  });
});

test("captions have the names that the upload gives them, else those of their languages", async () => {
  const { asset, contract } = await claimed({ captions: ["en", "de"], caption_labels: { EN: "English CC" } });
  expect((await complete(contract, { texts: { en: VTT, de: VTT } })).status).toBe(200);
  const labels = (await tracksOf(asset.id)).map(({ language, label }) => [language, label]);
  expect(Object.fromEntries(labels)).toEqual({ en: "English CC", de: "Deutsch" });
});

describe("an upload with captions", () => {
  const warning = [{ code: "captions_not_configured", message: expect.stringMatching(/VODBOX_TRANSCRIBE/) }];
  const begin = (of: TestApp, as: string, path: string, fields: Record<string, unknown>, headers = {}) =>
    of.call("POST", `/api/v1/uploads/${path}`, { key: as, body: { filename: "a.mp4", ...fields }, headers });
  const STARTS: [string, Record<string, unknown>][] = [
    ["initiate", { bytes_expected: 3 }],
    ["initiate_multipart", { bytes_expected: 3 }],
    ["from_url", { url: "https://example.com/a.mp4" }],
  ];

  test.each(STARTS)("gets a warning when no transcription service is configured: %s", async (path, fields) => {
    const captions = ["en", "de"];
    const headers = { "idempotency-key": path };
    const asked = await begin(app, key, path, { ...fields, captions }, headers);
    expect([asked.status, asked.body.warnings]).toEqual([201, warning]);
    const again = await begin(app, key, path, { ...fields, captions }, headers);
    expect([again.status, again.body.warnings]).toEqual([201, warning]);
    expect((await begin(app, key, path, fields)).body).not.toHaveProperty("warnings");
    expect((await begin(app, key, path, { ...fields, captions: [] })).body).not.toHaveProperty("warnings");
    expect((await app.as(key).getUpload(asked.body.id)).body).not.toHaveProperty("warnings");
  });

  test.each<[string, Record<string, unknown>, boolean]>([
    ["off", {}, true],
    ["a command", { transcribe: "command", transcribe_command: "/bin/true" }, false],
    ["a command that is not named", { transcribe: "command" }, true],
    ["an address", { transcribe: "openai", transcribe_url: "http://127.0.0.1:9" }, false],
    ["neither address nor key", { transcribe: "openai" }, true],
  ])("by what the server's own settings say: %s", async (_, flags, isWarned) => {
    const other = await testApp(flags);
    const own = await other.key((await other.tenant()).id);
    const { body } = await begin(other, own, "initiate", { bytes_expected: 3, captions: ["en"] });
    expect(body.warnings).toEqual(isWarned ? warning : undefined);
    await other.close();
  });
});

describe("an asset whose captions were not created", () => {
  const missing = { errors: { de: "Transcription is not configured on the worker." }, texts: { en: VTT } };
  const warning = { code: "captions_not_configured", message: expect.stringMatching(/\(de\).*VODBOX_TRANSCRIBE/) };

  test.each([
    ["has a warning without a transcriber", { captions: ["en", "de"] }, missing, [warning]],
    ["has none when they are there", { captions: ["en"] }, { texts: { en: VTT } }, []],
    ["has none when none were requested", {}, {}, []],
  ])("%s", async (_, request, what, expected) => {
    const { asset, contract } = await claimed(request);
    expect((await complete(contract, what)).status).toBe(200);
    expect((await app.as(key).getAsset(asset.id)).body.warnings).toEqual(expected);
    const events = await app.newEvents();
    expect(events.find(({ type }) => type === "video.asset.ready")?.data).toMatchObject({ warnings: expected });
  });
});

describe("a completion", () => {
  test("creates tracks for requested and additional captions, with events before the asset's", async () => {
    const { asset, contract } = await claimed({ captions: ["en", "de"] });
    const done = await complete(contract, { texts: { en: VTT, de: GERMAN, fr: VTT } });
    expect([done.status, done.body.caption_errors]).toEqual([200, null]);
    const events = await app.newEvents();
    expect(events.map(({ type }) => type)).toEqual([
      "video.subtitle.ready",
      "video.subtitle.ready",
      "video.subtitle.ready",
      "video.asset.ready",
    ]);
    const tracks = await tracksOf(asset.id);
    expect(tracks).toMatchObject([
      { language: "en", label: "English", source: "auto", position: 0, is_default: false, content: VTT },
      { language: "de", label: "Deutsch", source: "auto", position: 1, is_default: false, content: GERMAN },
      { language: "fr", label: "Français", source: "auto", position: 2 },
    ]);
    expect(events[1]?.data).toEqual({
      asset_id: String(asset.id),
      subtitle_id: tracks[1].id,
      language: "de",
      label: "Deutsch",
      source: "auto",
    });
    const { hls_url } = (await app.as(key).getPlayback(asset.id)).body;
    expect((await app.call("GET", hls_url)).text).toMatch(/TYPE=SUBTITLES,.*LANGUAGE="de"/);
  });

  test("have a warning for cues that the transcriber gave no duration", async () => {
    const { asset, contract } = await claimed({ captions: ["en"] });
    const body = await made(contract, { texts: { en: `${VTT}\n00:00:03.000 --> 00:00:03.000\nGone\n` } });
    expect((await callback(app, contract, "complete", body)).status).toBe(200);
    expect(await tracksOf(asset.id)).toMatchObject([
      { content: `${VTT}\n`, warnings: [{ code: "cues_skipped", count: 1, message: expect.stringMatching(/line 6/) }] },
    ]);
  });

  test("counts their bytes once, and leaves nothing at the worker's paths", async () => {
    const plain = await claimed({});
    await complete(plain.contract, {});
    const { asset, contract } = await claimed({ captions: ["en"] });
    const body = await made(contract, { texts: { en: VTT } });
    expect((await callback(app, contract, "complete", body)).status).toBe(200);
    expect(await storageOf(asset.id)).toBe((await storageOf(plain.asset.id)) + VTT.length);
    const { db, objects } = app.opened.app;
    const sum = (rows: { storageBytes: number }[]) => rows.reduce((bytes, row) => bytes + row.storageBytes, 0);
    expect(sum(await db.select().from(tenants).all())).toBe(sum(await db.select().from(assets).all()));
    expect(await objects?.head(body.subtitle_paths.en as string)).not.toBeNull();
    await app.runTask("sweep-objects");
    expect(await objects?.head(body.subtitle_paths.en as string)).toBeNull();
    expect((await tracksOf(asset.id))[0].content).toBe(VTT);
  });

  test("repeated changes nothing", async () => {
    const { asset, contract } = await claimed({ captions: ["en"] });
    const body = await made(contract, { texts: { en: VTT } });
    const first = await callback(app, contract, "complete", body);
    await types();
    const before = await tracksOf(asset.id);
    const again = await callback(app, contract, "complete", body);
    expect([again.status, again.body]).toEqual([first.status, first.body]);
    expect(await tracksOf(asset.id)).toEqual(before);
    expect(await types()).toEqual([]);
  });

  test("without one of them stores the reason, and neither job nor asset fails", async () => {
    const { asset, job, contract } = await claimed({ captions: ["en", "de"] });
    const done = await complete(contract, { texts: { en: VTT }, errors: { DE: "No speech was recognized." } });
    expect(done.status).toBe(200);
    const caption_errors = { de: "No speech was recognized." };
    expect(done.body).toMatchObject({ status: "completed", error: null, caption_errors });
    expect((await app.as(key).getJob(job.id)).body).toMatchObject({
      caption_errors,
    });
    expect(await types()).toEqual(["video.subtitle.ready", "video.asset.ready"]);
    expect((await app.as(key).getAsset(asset.id)).body.playback_status).toBe("ready");
  });

  const LONG = `${VTT.trimEnd()}${"a".repeat(2_000_000)}\n`;
  const ROWS: [string, UploadFields, Made, string][] = [
    ["says nothing of one", { captions: ["en", "de"] }, { texts: { en: VTT } }, "subtitle_paths.de"],
    [
      "has an error for one that is required",
      { captions: ["en"], captions_required: true },
      { errors: { en: "No." } },
      "caption_errors.en",
    ],
    ["has no WebVTT", { captions: ["en"] }, { texts: { en: "1\n00:00 -> x\nHello" } }, "subtitle_paths.en"],
    ["has no cue", { captions: ["en"] }, { texts: { en: "WEBVTT\n" } }, "subtitle_paths.en"],
    ["has more than 2 MB", { captions: ["en"] }, { texts: { en: LONG } }, "subtitle_paths.en"],
    ["has an invalid file for a caption that was not requested", {}, { texts: { fr: "no" } }, "subtitle_paths.fr"],
    ["names no language", {}, { texts: { klingonese1: VTT } }, "subtitle_paths.klingonese1"],
    ["has an error for no language", {}, { errors: { "?": "No." } }, "caption_errors.?"],
  ];
  test.each(ROWS)("that %s is refused, and another may follow", async (_, fields, what, field) => {
    const { asset, contract } = await claimed(fields);
    const refused = await complete(contract, what);
    expectError(refused, 422, "invalid_transcoding_result");
    expect(Object.keys(refused.body.details)).toEqual([field]);
    expect(await types()).toEqual([]);
    expect(await tracksOf(asset.id)).toEqual([]);
    const wanted = Object.keys(contract.outputs.subtitle_paths);
    const texts = Object.fromEntries(wanted.map((language) => [language, VTT]));
    expect((await complete(contract, { texts })).status).toBe(200);
  });

  test("requires existing files, below its own prefix", async () => {
    const { contract } = await claimed({ captions: ["en"] });
    const body = await made(contract, {});
    for (const path of [contract.outputs.subtitle_paths.en, "tenants/1/sources/x.vtt"])
      expectError(
        await callback(app, contract, "complete", { ...body, subtitle_paths: { en: path } }),
        422,
        "invalid_transcoding_result",
      );
  });

  test("with required captions that cannot be created is a failure, which can be retried", async () => {
    const { asset, contract } = await claimed({ captions: ["en"], captions_required: true });
    const failure = { code: "caption_failed", message: "en: The service answered 503.", retryable: true };
    expect((await callback(app, contract, "fail", failure)).body).toMatchObject({ status: "queued" });
    expect(await types()).toEqual(["video.job.failed", "video.job.queued"]);
    const again = (await next(app)).body;
    expect(again.outputs.captions_required).toBe(true);
    expect((await complete(again, { texts: { en: VTT } })).status).toBe(200);
    expect(await tracksOf(asset.id)).toMatchObject([{ language: "en", source: "auto" }]);
  });
});

describe("an existing track", () => {
  test("is kept when a person created it, and replaced when it is automatic", async () => {
    const { asset, contract } = await claimed({ captions: ["en", "de", "fr"] });
    const mine = await subtitled(app, key, asset.id, { language: "en", label: "Mine", position: "5" });
    const auto = await subtitled(app, key, asset.id, { language: "de", label: "Von selbst", position: "2" });
    const { db } = app.opened.app;
    await app.opened.app.write(async (tx) => {
      await tx.update(subtitles).set({ source: "auto" }).where(eq(subtitles.id, auto.id));
    });
    await types();
    expect((await complete(contract, { texts: { en: GERMAN, de: GERMAN, fr: VTT } })).status).toBe(200);
    expect(await types()).toEqual(["video.subtitle.ready", "video.subtitle.ready", "video.asset.ready"]);
    expect(await tracksOf(asset.id)).toMatchObject([
      { id: auto.id, language: "de", label: "Von selbst", source: "auto", position: 2, content: GERMAN },
      { id: mine.id, language: "en", label: "Mine", source: "upload", position: 5, content: VTT },
      { language: "fr", source: "auto", position: 6, content: VTT },
    ]);
    const sum = (await db.select().from(subtitles).all()).reduce((bytes, row) => bytes + row.bytes, 0);
    expect(sum).toBe(2 * VTT.length + GERMAN.length);
  });

  test("twenty tracks are the limit, which fails nothing", async () => {
    const { asset, contract } = await claimed({ captions: ["en"] });
    const tags = "aa ab af ak am an ar as av ay az ba be bg bi bm bn bo br bs".split(" ");
    for (const language of tags) await subtitled(app, key, asset.id, { language });
    await types();
    const done = await complete(contract, { texts: { en: VTT } });
    expect(done.body.caption_errors).toEqual({ en: "The asset already has the maximum number of subtitles." });
    expect(await types()).toEqual(["video.asset.ready"]);
    expect(await tracksOf(asset.id)).toHaveLength(20);
  });
});

test("cloud v2 behaves alike, and its receipt contains the result", async () => {
  const { asset } = await uploaded(app, key, { captions: ["en", "de"] });
  const base = "/api/v1/cloud/v2/transcoding_jobs";
  const { body: contract } = await app.call("POST", `${base}/claim`, { worker: app.worker, body: {} });
  expect(Object.keys(contract.outputs.subtitle_paths)).toEqual(["en", "de"]);
  const fence = { worker: app.worker, lease: contract.lease.token };
  const headers = { "x-svc-job-attempt-id": String(contract.attempt_id) };
  // The same helper uses the contract's own signing URL, which is fenced here.
  const call: TestApp["call"] = (method, path, options) => {
    const isOurs = path.includes(base);
    return app.call(method, path, isOurs ? { ...options, headers: { ...headers, ...options?.headers } } : options);
  };
  const path = contract.outputs.subtitle_paths.en;
  const paths = await putArtifacts({ call, worker: app.worker }, contract, { [path]: VTT });
  await app.newEvents();
  const send = (body: unknown) => call("POST", contract.callbacks.complete_url, { ...fence, body });
  const body = { ...paths, media: MEDIA, subtitle_paths: { en: path } };
  expectError(await send(body), 422, "invalid_transcoding_result");
  const whole = { ...body, caption_errors: { de: "No speech was recognized." } };
  const done = await send(whole);
  expect(done.body).toMatchObject({ status: "completed", caption_errors: whole.caption_errors });
  expect((await send(whole)).body).toEqual(done.body);
  expect(await types()).toEqual(["video.subtitle.ready", "video.asset.ready"]);
  expect(await tracksOf(asset.id)).toMatchObject([{ language: "en", source: "auto", content: VTT }]);
});

import { eq } from "drizzle-orm";
import { afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { graceAfterStart } from "#features/transcoding/recover.ts";
import { HttpError } from "#lib/base";
import { ParserPool } from "#platform/parsing/pool.ts";
import { tenants } from "#storage/db/schema.ts";
import { type TestApp, testApp } from "#test/support/app.ts";
import { databaseBytes } from "#test/support/database-bytes.ts";
import { expectError } from "#test/support/error.ts";
import { callback as flowCallback, next, putArtifacts, readyAsset, uploaded } from "#test/support/flow.ts";
import { subtitled } from "#test/support/subtitles.ts";
import { KEY, translationService } from "#test/support/translation-services.ts";

const VTT = "WEBVTT\n\n00:00:00.000 --> 00:00:02.000\nGood morning\n";

let app: TestApp;
let service: Awaited<ReturnType<typeof translationService>>;
let tenant: { id: number };
let key: string;
let asset: { id: number };
beforeAll(async () => {
  service = await translationService("libretranslate");
  app = await testApp({
    rate_limit_uploads: "100000/60",
    transcribe: "command",
    transcribe_command: "/bin/true",
    translate: "libretranslate",
    translate_url: service.url,
    translate_key: KEY,
  });
});
beforeEach(async () => {
  tenant = await app.tenant();
  key = await app.key(tenant.id);
  ({ asset } = await readyAsset(app, key));
  await app.newEvents();
});
// No job is left for the next test.
afterEach(async () => {
  vi.restoreAllMocks();
  await app.as(key).deleteAsset(asset.id);
});
const generate = (body: unknown = {}, headers = {}) =>
  app.as({ key, headers }).unchecked.generateSubtitle(asset.id, body);
const generated = async (body: unknown = {}) => {
  const answer = await generate(body);
  if (answer.status !== 202) throw new Error(answer.text);
  return answer.body;
};
const list = async () => (await app.as(key).listSubtitles(asset.id, { include: "content" })).body;
const jobOf = async ({ id }: { id: number }) => (await app.as(key).getCaptionJob(id)).body;
type Row = Record<string, unknown>;
const short = (rows: Row[]) => rows.map(({ language, source, status }) => `${language} ${source} ${status}`);

type Contract = Awaited<ReturnType<typeof next>>["body"];
let claims = 0;
const claim = (lane = "captions", capabilities = {}) =>
  next(app, `captions-${++claims}`, { worker_id: "w1", lane, capabilities });
const claimed = async (): Promise<Contract> => {
  const { status, body } = await claim();
  if (status !== 200) throw new Error("There is no job.");
  return body;
};
const callback = (contract: Contract, name: string, body: unknown = {}) => {
  const lease = contract.lease.token;
  return app.call("POST", contract.callbacks[`${name}_url`], { worker: app.worker, lease, body });
};
async function write(contract: Contract, text = VTT): Promise<void> {
  const options = { worker: app.worker, lease: contract.lease.token, body: { paths: [contract.speech.path] } };
  const { body } = await app.call("POST", contract.artifacts.sign_url, options);
  const { method, url, headers } = body[0];
  expect((await app.call(method, url, { headers, raw: text })).status).toBe(200);
}
async function writeWords(contract: Contract, text: string): Promise<void> {
  const options = { worker: app.worker, lease: contract.lease.token, body: { paths: [contract.speech.words_path] } };
  const { body } = await app.call("POST", contract.artifacts.sign_url, options);
  const { method, url, headers } = body[0];
  expect((await app.call(method, url, { headers, raw: text })).status).toBe(200);
}
async function complete(speech: Row = { language: "en", confidence: 0.9 }, contract?: Contract, text = VTT) {
  const leased = contract ?? (await claimed());
  await write(leased, text);
  return callback(leased, "complete", { speech });
}

describe("captions of a ready asset", () => {
  test("are recognized by a worker that can, and are a subtitle in the detected language", async () => {
    const { job, subtitle } = await generated();
    expect(job).toMatchObject({ status: "queued", language: "auto", asset_id: asset.id, subtitle_id: subtitle.id });
    expect(subtitle).toMatchObject({
      language: "und",
      source: "auto",
      status: "pending",
      confidence: null,
      error: null,
      bytes: 0,
      url: null,
    });
    expect(short(await list())).toEqual(["und auto pending"]);
    // Others cannot.
    expect((await claim("main")).status).toBe(204);
    const contract = await claimed();
    expect(contract).toMatchObject({
      lane: "captions",
      job: { profile: "captions", attempt: 1, asset_id: asset.id },
      source: { bytes: 0 },
      speech: { language: null },
      join: { parts: [{ asset_id: asset.id }] },
    });
    const [media] = contract.join.parts;
    const read = { paths: [media.prefix + media.manifest_path], method: "GET" };
    const options = { worker: app.worker, lease: contract.lease.token };
    const { body: signed } = await app.call("POST", contract.artifacts.sign_url, { ...options, body: read });
    expect((await app.call("GET", signed[0].url)).text).toContain("#EXTM3U");
    for (const paths of [[`${contract.outputs.prefix}other.vtt`], [`${media.prefix}../x`], ["tenants/1/x"]])
      for (const method of ["PUT", "GET"])
        expect(
          (await app.call("POST", contract.artifacts.sign_url, { ...options, body: { paths, method } })).status,
        ).toBe(422);
    await callback(contract, "heartbeat", { progress: 40, stage: "captioning" });
    expect(await jobOf(job)).toMatchObject({ status: "running", progress: 40, stage: "captioning", attempt: 1 });
    const transcodedMs = async () =>
      (await app.opened.app.db.select().from(tenants).where(eq(tenants.id, tenant.id)).get())?.transcodingMs ?? 0;
    const before = await transcodedMs();

    const done = await complete({ language: "en", confidence: 0.876 }, contract);
    expect([done.status, done.body]).toMatchObject([200, { status: "completed", progress: 100, error: null }]);
    expect(await list()).toMatchObject([
      {
        id: subtitle.id,
        language: "en",
        label: "English",
        source: "auto",
        status: "ready",
        confidence: 0.876,
        error: null,
        content: VTT,
        bytes: VTT.length,
      },
    ]);
    expect(await app.newEvents()).toMatchObject([{ type: "video.subtitle.ready", data: { subtitle_id: subtitle.id } }]);
    // Its minutes count as those of an encode.
    expect((await transcodedMs()) - before).toBe(4000);
    expect((await callback(contract, "complete", { speech: { language: "en" } })).body.code).toBe("stale_lease");
    expect((await app.call("GET", signed[0].url)).status).toBe(403);
  });

  test.each<[string, Row, Row | undefined, string]>([
    ["requested, whatever is detected", { language: "pt-br" }, { language: "es" }, "pt-BR"],
    ["detected", { language: "auto" }, { language: "EN-us" }, "en-US"],
    ["the asset's", {}, { language: null, audio_language: "fr" }, "nl"],
    ["of the audio", { tags: false }, { language: null, audio_language: "fr" }, "fr"],
    ["of the tenant", { tags: false, ofTenant: "pt-BR" }, { language: null }, "pt-BR"],
    ["undetermined", { tags: false }, { language: "no language" }, "und"],
  ])("are in the language that is %s", async (_, { tags = true, ofTenant = null, ...body }, speech, language) => {
    expect(
      (await app.as({ admin: app.admin }).unchecked.updateTenantSettings(tenant.id, { language: ofTenant })).status,
    ).toBe(200);
    if (tags) await app.as(key).updateTags(asset.id, { language: "nl" });
    await generated(body);
    expect((await complete(speech)).status).toBe(200);
    expect((await list()).map((row: Row) => row.language)).toEqual([language]);
  });

  test("have the times of their words, also after a correction, until they are another text", async () => {
    const words = [
      ["Good", 100, 480, 0.97],
      ["morning", 500, 1900, 0.3],
    ];
    await generated({ language: "en" });
    const contract = await claimed();
    await writeWords(contract, JSON.stringify(words));
    const before = await databaseBytes(app, tenant.id);
    expect((await complete({ language: "en" }, contract)).status).toBe(200);
    const bytes = (await databaseBytes(app, tenant.id)) - before;
    expect(bytes).toBeGreaterThan(0);
    const transcript = async () => (await app.as(key).getTranscript(asset.id, { format: "json" })).body;
    const shown = words.map(([text, start_ms, end_ms, confidence]) => ({ text, start_ms, end_ms, confidence }));
    expect(await transcript()).toEqual({ language: "en", words: shown });
    const [row] = await list();
    const text = VTT.replace("morning", "evening");
    expect((await app.as(key).updateSubtitle(asset.id, row.id, { content: text })).status).toBe(200);
    const evening = { text: "evening", start_ms: 480, end_ms: 2000 };
    expect(await transcript()).toEqual({ language: "en", words: [shown[0], evening] });
    const other = VTT.replace("Good morning", "Something else");
    expect((await app.as(key).updateSubtitle(asset.id, row.id, { content: other })).status).toBe(200);
    const cues = [{ text: "Something else", start_ms: 0, end_ms: 2000 }];
    expect(await transcript()).toEqual({ language: "en", cues });
    expect(await databaseBytes(app, tenant.id)).toBe(before);
  });

  test.each<[number, string, number]>([
    [422, "document_too_complex", 200],
    [429, "rate_limited", 429],
    [503, "busy", 503],
  ])(
    "where the times of words cannot be read, %i %s, the answer to a correction is %i",
    async (status, code, expected) => {
      await generated({ language: "en" });
      const contract = await claimed();
      await writeWords(contract, '[["Good",100,480],["morning",500,1900]]');
      expect((await complete({ language: "en" }, contract)).status).toBe(200);
      const [{ id }] = await list();
      const run = ParserPool.prototype.run;
      const spy = vi.spyOn(ParserPool.prototype, "run").mockImplementation(function (this: ParserPool, ...input) {
        return input[0] === "editedWords"
          ? Promise.reject(new HttpError(status, code, "The words cannot be read."))
          : run.apply(this, input);
      });
      const content = VTT.replace("morning", "evening");
      const { status: saved } = await app.as(key).updateSubtitle(asset.id, id, { content });
      expect([saved, spy.mock.calls.some(([name]) => name === "editedWords")]).toEqual([expected, true]);
      spy.mockRestore();
      if (expected !== 200) {
        // Nothing was changed; the same request keeps the times.
        expect((await app.as(key).updateSubtitle(asset.id, id, { content })).status).toBe(200);
        const { body } = await app.call("GET", `/api/v1/assets/${asset.id}/transcript?format=json`, { key });
        expect(body.words[0]).toMatchObject({ text: "Good", start_ms: 100, end_ms: 480 });
        return;
      }
      expect(await list()).toMatchObject([{ id, content }]);
      const { body } = await app.as(key).getTranscript(asset.id, { format: "json" });
      expect(body).toEqual({ language: "en", cues: [{ text: "Good evening", start_ms: 0, end_ms: 2000 }] });
    },
  );

  test.each([
    ["not JSON", "[["],
    ["no list", '{"words":[]}'],
    ["a word without an end", '[["a",1]]'],
    ["a time that is no whole number", '[["a",1.5,2]]'],
    ["a confidence over 1", '[["a",1,2,1.5]]'],
    ["more than four values", '[["a",1,2,0.5,0.5]]'],
    ["a word that ends before it starts", '[["a",5,2]]'],
    ["a word of a million letters", JSON.stringify([["a".repeat(1e6), 0, 1]])],
  ])("are complete without malformed times of words: %s", async (_, text) => {
    await generated({ language: "en" });
    const contract = await claimed();
    await writeWords(contract, text);
    expect((await complete({ language: "en" }, contract)).status).toBe(200);
    const { body } = await app.as(key).getTranscript(asset.id, { format: "json" });
    expect(Object.keys(body)).toEqual(["language", "cues"]);
  });

  test("that cannot be recognized have failed with the reason; attempts are repeated where it helps", async () => {
    const { job, subtitle } = await generated({ language: "en" });
    const fault = { code: "transcription_failed", message: "It answered 503.", retryable: true };
    expect((await callback(await claimed(), "fail", fault)).body).toMatchObject({ status: "queued", attempt: 1 });
    expect((await claim()).status).toBe(204);
    app.advance(60_000);
    const silent = { code: "no_speech", message: "No speech was recognized.", retryable: false };
    expect((await callback(await claimed(), "fail", silent)).body.status).toBe("failed");
    const error = { code: "no_speech", message: silent.message };
    expect(await list()).toMatchObject([{ id: subtitle.id, status: "failed", error, content: "" }]);
    expect(await jobOf(job)).toMatchObject({ status: "failed", error, attempt: 2 });
    // It is generated again in its place.
    const again = await generated({ language: "en" });
    expect(again.subtitle).toMatchObject({ id: subtitle.id, status: "pending", error: null });
    expect(again.job.id).not.toBe(job.id);
    expect((await app.as(key).getCaptionJob(job.id)).status).toBe(404);
  });

  test("stay with their worker when the server was down for longer than the lease", async () => {
    await generated();
    const first = await claimed();
    app.advance(10 * 60_000);
    await graceAfterStart(app.opened.app);
    expect((await claim()).status).toBe(204);
    expect((await callback(first, "heartbeat")).status).toBe(200);
  });

  test("fail when their worker is lost too often, and are released by one that stops", async () => {
    await generated();
    const first = await claimed();
    expect((await callback(first, "release")).body).toMatchObject({ status: "queued", attempt: 0 });
    for (let attempt = 1; attempt <= app.opened.app.config.max_attempts; attempt++) {
      expect((await claimed()).job.attempt).toBe(attempt);
      app.advance(10 * 60_000);
    }
    expect((await claim()).status).toBe(204);
    expect(await list()).toMatchObject([{ status: "failed", error: { code: "worker_lost" } }]);
  });

  test("are repeated at no cost while pending, and replace what was generated", async () => {
    const first = await generated({ language: "en" });
    const same = await generated({ language: "en" });
    expect(same).toEqual(first);
    const stale = await claimed();
    const other = await generated({ language: "en", translate_to: ["de"] });
    expect([other.subtitle.id, other.job.id === first.job.id]).toEqual([first.subtitle.id, false]);
    expect((await callback(stale, "heartbeat")).status).toBe(409);
    expect((await complete()).status).toBe(200);
    // The earlier text stays until there is another one, and afterwards if there is none.
    const again = await generated({ language: "en" });
    expect(again.subtitle).toMatchObject({ id: first.subtitle.id, status: "pending", bytes: VTT.length });
    await callback(await claimed(), "fail", { code: "no_speech", message: "None.", retryable: false });
    const rows = (await list()).filter(({ language }: Row) => language === "en");
    expect(rows).toMatchObject([{ status: "ready", content: VTT, error: { code: "no_speech" } }]);
    await generated({ language: "en" });
    await complete({ language: "en" }, undefined, VTT.replace("morning", "evening"));
    const [row] = (await list()).filter(({ language }: Row) => language === "en");
    expect(row).toMatchObject({ status: "ready", error: null, content: VTT.replace("morning", "evening") });
  });

  test("in a detected language replace those that were generated in it, and not an uploaded subtitle", async () => {
    await generated({ language: "en" });
    await complete();
    await generated();
    await complete({ language: "en" });
    expect(short(await list())).toEqual(["en auto ready"]);
    await app.as(key).deleteSubtitle(asset.id, (await list())[0].id);
    await subtitled(app, key, asset.id);
    expectError(await generate({ language: "en" }), 422, "language_taken");
    await generated();
    expect((await complete()).body).toMatchObject({ status: "failed", error: { code: "language_taken" } });
    expect(short(await list()).toSorted()).toEqual(["en upload ready", "und auto failed"]);
  });

  test("are canceled with their subtitle, and by a text that a person writes", async () => {
    const { subtitle } = await generated({ language: "en", translate_to: ["de"] });
    const contract = await claimed();
    expect((await app.as(key).updateSubtitle(asset.id, subtitle.id, { content: VTT })).status).toBe(200);
    expect((await callback(contract, "heartbeat")).status).toBe(409);
    expect(await list()).toMatchObject([
      { language: "en", status: "ready" },
      { language: "de", status: "failed", error: { code: "canceled" } },
    ]);
    await generated({ language: "en" });
    const second = await claimed();
    expect((await app.as(key).deleteSubtitle(asset.id, subtitle.id)).status).toBe(204);
    expect((await callback(second, "complete", { speech: { language: "en" } })).status).toBe(409);
    expect((await claim()).status).toBe(204);
  });

  test("wait for encodes, and take their place among tenants", async () => {
    const other = await app.key((await app.tenant()).id);
    const { asset: second } = await readyAsset(app, key);
    const { asset: theirs } = await readyAsset(app, other);
    await generated();
    await app.as(key).generateSubtitle(second.id, {});
    await app.as(other).generateSubtitle(theirs.id, {});
    const { asset: encoded } = await uploaded(app, key);
    expect((await claim()).status).toBe(204);
    expect((await claim("main")).body.job.asset_id).toBe(encoded.id);
    const order = [await claimed(), await claimed(), await claimed()].map(({ join }) => join.parts[0].asset_id);
    expect(order).toEqual([asset.id, theirs.id, second.id]);
    // One that runs a single job takes them last.
    await generated();
    for (const { id } of [second]) await app.as(key).deleteAsset(id);
    await app.as(other).deleteAsset(theirs.id);
    await app.as(key).deleteAsset(encoded.id);
  });

  test("of media that change meanwhile are recognized again, at no cost", async () => {
    const { job } = await generated({ language: "en" });
    for (const end of ["fail", "complete"]) {
      const contract = await claimed();
      await write(contract);
      expect((await app.as(key).reencodeAsset(asset.id)).status).toBe(202);
      const { body: encode } = await next(app);
      const media = { duration_seconds: 4, width: 640, height: 360, frame_rate: 30, renditions: [] };
      const paths = await putArtifacts(app, encode);
      expect((await flowCallback(app, encode, "complete", { ...paths, media })).status).toBe(200);
      const { body } = await callback(contract, end, { speech: { language: "en" } });
      expect(body).toMatchObject({ id: job.id, status: "queued", attempt: 0 });
    }
    expect((await complete()).body.status).toBe("completed");
  });
});

describe("translations of generated captions", () => {
  test("are pending with them and follow them; what cannot be translated says why", async () => {
    const { job, subtitle } = await generated({ translate_to: ["de", "fr", "en", "de"] });
    expect(job.translations.map(({ language, status }: Row) => `${language} ${status}`)).toEqual([
      ...["de pending", "fr pending", "en pending"],
    ]);
    expect(short(await list())).toEqual([
      ...["und auto pending", "de translation pending", "fr translation pending", "en translation pending"],
    ]);
    await complete();
    await app.runTask("translate-captions");
    const rows = await list();
    expect(rows).toMatchObject([
      { id: subtitle.id, language: "en", source: "auto", status: "ready", label: "English" },
      { language: "de", source: "translation", status: "ready", content: VTT.replace("Good morning", "GOOD MORNING") },
      { language: "fr", source: "translation", status: "failed", error: { code: "invalid_language" } },
    ]);
    expect((await jobOf(job)).translations).toMatchObject([
      { language: "de", subtitle_id: rows[1].id, status: "ready", error: null },
      { language: "fr", status: "failed", error: { code: "invalid_language" } },
      { language: "en", status: "skipped" },
    ]);
    expect((await app.newEvents()).map(({ type }) => type)).toEqual(["video.subtitle.ready", "video.subtitle.ready"]);
  });

  test("are tried again when the service fails, fail at last, and fail with the captions", async () => {
    const { job } = await generated({ language: "en", translate_to: ["de"] });
    await complete();
    const broken = (response: { writeHead(status: number): { end(): void } }) => response.writeHead(400).end();
    for (let attempt = 0; attempt < 4; attempt++) {
      service.mischief.push(broken);
      await app.runTask("translate-captions");
      const [entry] = (await jobOf(job)).translations;
      expect(entry.status).toBe(attempt < 3 ? "pending" : "failed");
      app.advance(10 * 60_000);
    }
    expect((await list())[1]).toMatchObject({
      language: "de",
      status: "failed",
      error: { code: "translation_failed" },
    });
    const other = await generated({ language: "en", translate_to: ["de"] });
    await callback(await claimed(), "fail", { code: "no_speech", message: "None.", retryable: false });
    expect((await jobOf(other.job)).translations).toMatchObject([{ status: "failed", error: { code: "no_speech" } }]);
  });

  test("survive a crash of the server, and a deleted subtitle is not translated", async () => {
    const { job } = await generated({ language: "en", translate_to: ["de", "zh-Hans"] });
    await complete();
    const german = (await list()).find(({ language }: Row) => language === "de");
    await app.as(key).deleteSubtitle(asset.id, german?.id);
    await app.runTask("translate-captions");
    expect((await jobOf(job)).translations.map(({ language, status }: Row) => `${language} ${status}`)).toEqual([
      ...["de skipped", "zh-Hans ready"],
    ]);
  });
});

describe("a request", () => {
  test.each<[Row, number, string]>([
    [{ language: "" }, 422, "invalid_language"],
    [{ language: "x!" }, 422, "invalid_language"],
    [{ language: 7 }, 422, "validation_failed"],
    [{ translate_to: "de" }, 422, "validation_failed"],
    [{ translate_to: ["de", "nope!"] }, 422, "invalid_language"],
    [{ language: "en", translate_to: ["en"] }, 422, "invalid_language"],
    [{ translate_to: Array(21).fill("de") }, 422, "validation_failed"],
  ])("with %o is refused", async (body, status, code) => {
    expectError(await generate(body), status, code);
    expect(await list()).toEqual([]);
  });

  test("needs a transcriber, of the server or of a worker", async () => {
    const bare = await testApp();
    const own = await bare.key((await bare.tenant()).id);
    const { asset: ready } = await readyAsset(bare, own);
    const ask = () => bare.as(own).generateSubtitle(ready.id, {});
    expectError(await ask(), 503, "transcription_not_configured");
    const features = async () => (await bare.as(own).getFeatures()).body.captions;
    expect(await features()).toBe(false);
    // It recognizes with a model of the server, which has none.
    await next(bare, "captions-0", { worker_id: "w1", lane: "captions", capabilities: { speech_model: true } });
    expectError(await ask(), 503, "transcription_not_configured");
    await next(bare, "captions", { worker_id: "w2", lane: "captions" });
    expect([(await ask()).status, await features()]).toEqual([202, true]);
    bare.advance(10 * 60_000);
    expectError(await ask(), 503, "transcription_not_configured");
    expectError(await bare.as(own).generateSubtitle(999, {}), 404, "not_found");
    await bare.close();
  });

  test("needs an asset that is ready, and an own one", async () => {
    const { asset: pending } = await uploaded(app, key);
    const ask = (id: number, as = key) => app.as(as).generateSubtitle(id, {});
    expectError(await ask(pending.id), 422, "asset_not_ready");
    const other = await app.key((await app.tenant()).id);
    expectError(await ask(asset.id, other), 404, "not_found");
    expectError(await ask(asset.id, await app.key(tenant.id, ["assets:read"])), 403, "forbidden_scope");
    const { job } = await generated();
    expectError(await app.as(other).getCaptionJob(job.id), 404, "not_found");
    await app.as(key).deleteAsset(pending.id);
  });

  test("with an Idempotency-Key is answered as before", async () => {
    const first = await generate({}, { "idempotency-key": `generate-${asset.id}` });
    await complete();
    const again = await generate({}, { "idempotency-key": `generate-${asset.id}` });
    expect([again.status, again.headers.get("idempotent-replayed"), again.body]).toEqual([202, "true", first.body]);
  });
});

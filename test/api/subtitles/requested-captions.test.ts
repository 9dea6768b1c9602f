import { beforeEach, describe, expect, test } from "vitest";
import { DEFAULT_PRICES } from "#platform/config/prices.ts";
import { type TestApp, testApp } from "#test/support/app.ts";
import { completeEarly, EARLY_PLAN, earlyResult, publishedEarly } from "#test/support/early.ts";
import { expectError } from "#test/support/error.ts";
import { callback, next, putArtifacts, type UploadFields, uploaded } from "#test/support/flow.ts";
import { subtitled, VTT } from "#test/support/subtitles.ts";
import { finish, nextTask, written } from "#test/support/tasks.ts";

/** Captions that are requested with an upload, of workers that leave them to jobs of their own. */

const TRANSCRIBER = { transcribe: "command", transcribe_command: "/bin/true" };
const LONG_SECONDS = 150;

let app: TestApp;
let tenant: { id: number };
let key: string;
beforeEach(() => open(TRANSCRIBER));
async function open(flags: Record<string, unknown>) {
  app = await testApp({ max_attempts: 3, ...flags });
  tenant = await app.tenant();
  key = await app.key(tenant.id);
}

type Contract = Awaited<ReturnType<typeof next>>["body"];
const claim = (fields: Record<string, unknown> = {}) =>
  next(app, undefined, { worker_id: "w1", capabilities: { separate_captions: true }, ...fields });
const claimSpeech = () => claim({ lane: "captions", capabilities: { captions: 2 } });
/** An upload, and the lease of its job. */
async function claimed(fields: UploadFields) {
  const made = await uploaded(app, key, fields);
  const { body: contract } = await claim();
  return { ...made, contract };
}
const mediaOf = (seconds: number) => ({
  duration_seconds: seconds,
  width: 640,
  height: 360,
  renditions: [] as Record<string, unknown>[],
});
async function complete(contract: Contract, fields: Record<string, unknown> = {}, media = mediaOf(LONG_SECONDS)) {
  const paths = await putArtifacts(app, contract);
  return callback(app, contract, "complete", { ...paths, separate_captions: true, media, ...fields });
}
const get = async (path: string) => (await app.call("GET", path, { key })).body;
const tracksOf = (id: number) => get(`/api/v1/assets/${id}/subtitles?include=content`);
const jobOf = ({ id }: { id: number }) => get(`/api/v1/transcoding_jobs/${id}`);
const usedMinutes = async () => (await get("/api/v1/usage/summary"))[0].transcoding_minutes;
const send = (contract: Contract, name: string, body: unknown = {}) =>
  app.call("POST", contract.callbacks[`${name}_url`], { worker: app.worker, lease: contract.lease.token, body });
/** Writes the captions of a job, and completes it. */
async function published({ artifacts, lease, speech, callbacks }: Contract) {
  const as = { worker: app.worker, lease: lease.token };
  const { body } = await app.call("POST", artifacts.sign_url, { ...as, body: { paths: [speech.path] } });
  const [{ method, url, headers }] = body;
  await app.call(method, url, { headers, raw: VTT });
  return (await app.call("POST", callbacks.complete_url, { ...as, body: { speech: { language: "en" } } })).body;
}

describe("captions of a long upload", () => {
  test("do not delay the asset, and are recognized in parts, as generated ones", async () => {
    const { asset, contract } = await claimed({ captions: ["en"], caption_labels: { en: "English CC" } });
    expect(contract.outputs).toMatchObject({
      subtitle_paths: { en: expect.stringContaining("captions/en.vtt") },
      separate_captions: true,
    });
    await app.newEvents();
    expect((await complete(contract)).body).toMatchObject({ status: "completed", caption_errors: null });
    expect((await app.newEvents()).map(({ type }) => type)).toEqual(["video.asset.ready"]);
    expect((await get(`/api/v1/assets/${asset.id}`)).playback_status).toBe("ready");
    expect(await tracksOf(asset.id)).toMatchObject([
      { language: "en", label: "English CC", source: "auto", status: "pending" },
    ]);

    const { body: plan } = await claimSpeech();
    expect(plan.speech).toMatchObject({ step: "plan", language: "en" });
    const parts = [0, 1].map((index) => ({ start_ms: index * 60_000, end_ms: index * 60_000 + 50_000 }));
    await send(plan, "complete", { parts });
    for (const { start_ms } of parts) {
      const { body: part } = await claimSpeech();
      expect(part.speech).toMatchObject({ step: "part", part: { start_ms } });
      await send(part, "complete", { speech: { language: "en", utterances: [] } });
    }
    const { body: join } = await claimSpeech();
    expect(join.speech.step).toBe("join");
    expect((await published(join)).status).toBe("completed");
    expect(await tracksOf(asset.id)).toMatchObject([{ label: "English CC", status: "ready", content: VTT }]);
    expect((await app.newEvents()).map(({ type }) => type)).toEqual(["video.subtitle.ready"]);
  });

  test("count minutes once for each language, when they are there", async () => {
    const { contract } = await claimed({ captions: ["en"] });
    await complete(contract, {}, mediaOf(60));
    expect(await usedMinutes()).toBe(1);
    const { body: speech } = await claimSpeech();
    await published(speech);
    expect(await usedMinutes()).toBe(2);
  });

  test("that fail are reported by the subtitle and by the job that requested them", async () => {
    const { asset, job, contract } = await claimed({ captions: ["en", "de"] });
    await complete(contract);
    const { body: plan } = await claimSpeech();
    await send(plan, "complete", { parts: [] });
    expect(await jobOf(job)).toMatchObject({
      status: "completed",
      caption_errors: { en: "No speech was recognized." },
    });
    expect(await tracksOf(asset.id)).toMatchObject([
      { language: "en", status: "failed", error: { code: "no_speech" } },
      { language: "de", status: "pending" },
    ]);
  });
});

test("what is there in a language stays, and a repeated encode keeps it", async () => {
  const { asset, contract } = await claimed({ captions: ["en", "de"] });
  const mine = await subtitled(app, key, asset.id, { language: "en", label: "Mine" });
  expect((await complete(contract, {}, mediaOf(60))).status).toBe(200);
  const kept = [
    { id: mine.id, source: "upload", status: "ready", content: VTT },
    { language: "de", source: "auto", status: "ready", content: VTT },
  ];
  await published((await claimSpeech()).body);
  expect(await tracksOf(asset.id)).toMatchObject(kept);
  await app.as(key).reencodeAsset(asset.id, {});
  expect((await complete((await claim()).body, {}, mediaOf(60))).status).toBe(200);
  expect(await tracksOf(asset.id)).toMatchObject(kept);
  expect((await claimSpeech()).status).toBe(204);
});

test("captions that are required, and those of an older worker, are part of the encode", async () => {
  const required = await claimed({ captions: ["en"], captions_required: true });
  expect(required.contract.outputs).toMatchObject({
    subtitle_paths: { en: expect.stringContaining("captions/en.vtt") },
    captions_required: true,
  });
  expect(required.contract.outputs).not.toHaveProperty("separate_captions");
  expectError(await complete(required.contract), 422, "invalid_transcoding_result");
  await uploaded(app, key, { captions: ["en"] });
  const { body: older } = await next(app);
  expect(older.outputs).toMatchObject({ subtitle_paths: { en: expect.any(String) }, captions_required: false });
  expect(older.outputs).not.toHaveProperty("separate_captions");
  expectError(await complete(older, { separate_captions: false }), 422, "invalid_transcoding_result");
});

type Lack = { flags?: Record<string, unknown>; codecs?: string };
const REASONS: [string, Lack, string][] = [
  [
    "nothing can recognize speech",
    { flags: { transcribe: "off" } },
    "Neither this server nor a worker has a transcriber.",
  ],
  ["there is no audio", { codecs: "avc1.64001e" }, "The asset has no audio."],
];
test.each(REASONS)("when %s, the job says so, and no subtitle waits", async (_, { flags, codecs }, reason) => {
  if (flags) await open(flags);
  const { asset, contract } = await claimed({ captions: ["en"] });
  const playlist_path = `${contract.outputs.prefix}low/playlist.m3u8`;
  const renditions = codecs ? [{ name: "360p", bandwidth: 800_000, codecs, playlist_path }] : [];
  const done = await complete(contract, {}, { ...mediaOf(10), renditions });
  expect(done.body).toMatchObject({ status: "completed", caption_errors: { en: reason } });
  expect(await tracksOf(asset.id)).toEqual([]);
  const { warnings } = await get(`/api/v1/assets/${asset.id}`);
  expect(warnings.map(({ code }: { code: string }) => code)).toEqual(flags ? ["captions_not_configured"] : []);
});

test("minutes that are used up leave them out, with the reason", async () => {
  const { plans, ...prices } = DEFAULT_PRICES;
  const limited = Object.fromEntries(
    Object.entries(plans).map(([name, plan]) => [name, { ...plan, quotas: { transcoding_minutes: 1 } }]),
  );
  await open({ ...TRANSCRIBER, prices: JSON.stringify({ ...prices, plans: limited }) });
  const { contract } = await claimed({ captions: ["en"] });
  const done = await complete(contract, {}, mediaOf(60));
  expect(done.body.caption_errors).toEqual({ en: expect.stringContaining("1 transcoding minutes per month") });
});

describe("of an encode in parts", () => {
  const tasks = (fields: Record<string, unknown> = {}) =>
    nextTask(app, undefined, { capabilities: { tasks: 1, separate_captions: true }, ...fields });

  test("the audio task leaves them to a job, which is queued when the last task is complete", async () => {
    const { asset } = await uploaded(app, key, { captions: ["en"] });
    await finish(app, (await tasks()).body);
    for (let { body: contract } = await tasks(); contract; { body: contract } = await tasks()) {
      const { kind } = contract.task;
      expect(contract.outputs.separate_captions).toBe(kind === "audio" ? true : undefined);
      if (kind !== "audio") await finish(app, contract);
      else await callback(app, contract, "complete", { written: written(contract), separate_captions: true });
    }
    expect(await tracksOf(asset.id)).toMatchObject([{ language: "en", source: "auto", status: "pending" }]);
  });

  /** Twenty minutes, whose audio can be cut at every second segment. */
  const SEGMENTS = 300;
  const plan = {
    plan: EARLY_PLAN.plan,
    duration_seconds: 4 * SEGMENTS,
    early: { ...EARLY_PLAN.early, segments: SEGMENTS, audio_step: 2 },
  };
  test.each([true, false])(
    "the part of the audio that creates them decides; the worker is older: %s",
    async (isOlder) => {
      const one = (fields: Record<string, unknown> = {}) =>
        isOlder ? nextTask(app, undefined, fields) : tasks(fields);
      await publishedEarly(app, key, { plan, captions: ["en"], claim: one });
      const audio: Contract[] = [];
      while (audio.length < 2) {
        const { body: contract } = await one({ lane: "light" });
        const { outputs, task } = contract;
        if (task.kind !== "audio") {
          await completeEarly(app, contract, SEGMENTS);
          continue;
        }
        const isRequested = outputs.subtitle_paths.en !== undefined;
        const body = {
          ...earlyResult(contract, SEGMENTS),
          ...(isRequested && { caption_errors: { en: "No speech was recognized." } }),
          ...(outputs.separate_captions && { separate_captions: true }),
        };
        expect((await callback(app, contract, "complete", body)).status).toBe(200);
        audio.push(contract);
      }
      const requested = audio.map(({ outputs }) => outputs.separate_captions ?? Object.keys(outputs.subtitle_paths));
      expect(requested).toEqual([[], isOlder ? ["en"] : true]);
    },
  );
});

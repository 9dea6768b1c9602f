import { afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { graceAfterStart } from "#features/transcoding/recover.ts";
import { MAX_PARTS } from "#protocol/speech.ts";
import { captionParts } from "#storage/db/schema.ts";
import { type TestApp, testApp } from "#test/support/app.ts";
import { expectError } from "#test/support/error.ts";
import { callback as flowCallback, next, putArtifacts, uploaded } from "#test/support/flow.ts";

const VTT = "WEBVTT\n\n00:00:00.000 --> 00:00:02.000\nGood morning\n";
const LONG_SECONDS = 150;

let app: TestApp;
let tenant: { id: number };
let key: string;
let asset: { id: number };
let claims = 0;
beforeAll(async () => {
  app = await testApp({
    rate_limit_uploads: "100000/60",
    transcribe: "command",
    transcribe_command: "/bin/true",
  });
});
beforeEach(async () => {
  tenant = await app.tenant();
  key = await app.key(tenant.id);
  asset = await longAsset(key);
});
// No job is left for the next test.
afterEach(async () => {
  await app.as(key).deleteAsset(asset.id);
});

async function longAsset(as: string, seconds = LONG_SECONDS): Promise<{ id: number }> {
  const made = await uploaded(app, as);
  const { body: contract } = await next(app, `long-${++claims}`);
  await encode(contract, seconds);
  return made.asset;
}
async function encode(contract: Contract, seconds = LONG_SECONDS): Promise<void> {
  const paths = await putArtifacts(app, contract);
  const media = { duration_seconds: seconds, width: 640, height: 360, frame_rate: 30, renditions: [] };
  expect((await flowCallback(app, contract, "complete", { ...paths, media })).status).toBe(200);
}

type Contract = Awaited<ReturnType<typeof next>>["body"];
type Row = Record<string, unknown>;
const generate = async (body: unknown = { language: "en" }, of = asset, as = key) => {
  const answer = await app.as(as).unchecked.generateSubtitle(of.id, body);
  if (answer.status !== 202) throw new Error(answer.text);
  return answer.body.job;
};
const jobOf = async ({ id }: { id: number }) => (await app.as(key).getCaptionJob(id)).body;
const tracks = async () => (await app.as(key).listSubtitles(asset.id, { include: "content" })).body;
const claim = (captions = 2) =>
  next(app, `parts-${++claims}`, { worker_id: "w1", lane: "captions", capabilities: { captions } });
const claimed = async (captions?: number): Promise<Contract> => {
  const { status, body } = await claim(captions);
  if (status !== 200) throw new Error("There is no work.");
  return body;
};
const callback = (contract: Contract, name: string, body: unknown = {}) =>
  app.call("POST", contract.callbacks[`${name}_url`], { worker: app.worker, lease: contract.lease.token, body });
const sign = (contract: Contract, body: unknown) =>
  app.call("POST", contract.artifacts.sign_url, { worker: app.worker, lease: contract.lease.token, body });

/** `count` parts of 40 s, each but the first after a pause of a second. */
const planOf = (count: number) =>
  Array.from({ length: count }, (_, index) => ({ start_ms: index * 41_000, end_ms: index * 41_000 + 40_000 }));
const said = (text: string, startMs: number) => ({
  text,
  start_ms: startMs,
  end_ms: startMs + 400,
  confidence: 0.5,
  words: [],
});
const speech = (text: string | null, language: string | null = "en", startMs = 1000) => ({
  language,
  utterances: text === null ? [] : [said(text, startMs)],
});
async function divided(count = 3, body: unknown = { language: "en" }) {
  const job = await generate(body);
  const plan = await claimed();
  expect(plan.speech.step).toBe("plan");
  const answer = await callback(plan, "complete", { parts: planOf(count) });
  expect([answer.status, answer.body]).toMatchObject([200, { status: "running", parts: count }]);
  return job;
}
const recognize = async (contract: Contract, text: string | null = "Hello", language: string | null = "en") => {
  const answer = await callback(contract, "complete", { speech: speech(text, language, startOf(contract) + 1000) });
  expect(answer.status).toBe(200);
  return answer.body;
};
const startOf = (contract: Contract) => contract.speech.part?.start_ms;
async function publish(contract: Contract) {
  const { body } = await sign(contract, { paths: [contract.speech.path] });
  const { method, url, headers } = body[0];
  expect((await app.call(method, url, { headers, raw: VTT })).status).toBe(200);
  return callback(contract, "complete", { speech: { language: "en", confidence: 0.5 } });
}

const BAD_PLANS: readonly [string, unknown][] = [
  ["no list", {}],
  ["parts that overlap", [...planOf(1), { start_ms: 39_000, end_ms: 50_000 }]],
  ["parts out of order", planOf(2).toReversed()],
  ["an empty part", [{ start_ms: 5, end_ms: 5 }]],
  ["a time before the start", [{ start_ms: -1, end_ms: 5 }]],
  ["a time that is no whole number", [{ start_ms: 0, end_ms: 5.5 }]],
  ["too many", Array.from({ length: MAX_PARTS + 1 }, (_, at) => ({ start_ms: at, end_ms: at + 1 }))],
];
const BAD_SPEECH: readonly [string, Row, number][] = [
  ["no speech", {}, 422],
  ["an utterance after the part", { speech: { language: "en", utterances: [said("a", 42_000)] } }, 422],
  ["a text that is none", { speech: { language: "en", utterances: [{ ...said("a", 0), text: 7 }] } }, 422],
  ["a negative time", { speech: { language: "en", utterances: [said("a", -5)] } }, 422],
  ["a confidence over 1", { speech: { language: "en", utterances: [{ ...said("a", 0), confidence: 2 }] } }, 422],
  ["more text than can be said", { speech: speech("a".repeat(300_000)) }, 413],
  ["more utterances than can be said", { speech: { language: "en", utterances: Array(1001).fill(said("a", 0)) } }, 422],
];

describe("captions of long audio", () => {
  test("are recognized in parts by several workers, and joined by one; the progress of the job counts all parts", async () => {
    const job = await divided(3);
    const parts = [await claimed(), await claimed(), await claimed()];
    expect(parts.map(startOf)).toEqual([0, 41_000, 82_000]);
    expect(parts[1]).toMatchObject({
      lane: "captions",
      job: { profile: "captions", attempt: 1, asset_id: asset.id },
      artifacts: { local_path: null },
      speech: { step: "part", language: "en", requested_language: "en", part: { start_ms: 41_000, end_ms: 81_000 } },
      join: { parts: [{ asset_id: asset.id }] },
    });
    expect((await claim()).status).toBe(204);
    expect(new Set(parts.map(({ job: { id } }) => id)).size).toBe(3);
    await callback(parts[1], "heartbeat", { progress: 50 });
    expect(await jobOf(job)).toMatchObject({ status: "running", stage: "captioning", attempt: 1, progress: 20.66 });
    expect(await recognize(parts[2], "last")).toMatchObject({ id: job.id, status: "running" });
    await recognize(parts[0], "first");
    expect(await recognize(parts[1], "middle")).toMatchObject({ id: job.id, status: "queued", progress: 99 });

    const join = await claimed();
    expect(join.speech).toMatchObject({ step: "join", language: "en" });
    await callback(join, "heartbeat", { progress: 0, stage: "captioning" });
    expect(await jobOf(job)).toMatchObject({ status: "running", progress: 99, attempt: 1 });
    const options = { worker: app.worker, lease: join.lease.token };
    const { body } = await app.call("GET", join.speech.parts_url, options);
    expect(body.next).toBeNull();
    const words = body.parts.map(({ start_ms, utterances }: { start_ms: number; utterances: { text: string }[] }) => [
      ...[start_ms, utterances[0]?.text],
    ]);
    expect(words).toEqual([
      [0, "first"],
      [41_000, "middle"],
      [82_000, "last"],
    ]);
    expect((await publish(join)).body).toMatchObject({ status: "completed", progress: 100 });
    expect(await tracks()).toMatchObject([{ language: "en", status: "ready", confidence: 0.5, content: VTT }]);
    expect((await app.call("GET", join.speech.parts_url, options)).status).toBe(409);
    expect(await app.opened.app.db.select().from(captionParts)).toEqual([]);
  });

  test("of a lost worker are repeated for its part only, and a released one is free at once", async () => {
    const job = await divided(3);
    const [lost, other] = [await claimed(), await claimed()];
    await recognize(other);
    app.advance(10 * 60_000);
    // A restart of the server loses none.
    await graceAfterStart(app.opened.app);
    expect((await callback(lost, "heartbeat")).status).toBe(200);
    app.advance(10 * 60_000);
    const again = await claimed();
    expect([startOf(again), again.job.attempt]).toEqual([0, 2]);
    for (const [name, body] of [
      ...[["complete", { speech: speech("late") }] as const, ["heartbeat", { progress: 90 }] as const],
      ...[["fail", { message: "late", retryable: false }] as const, ["release", {}] as const],
    ])
      expectError(await callback(lost, name, body), 409, "stale_lease", name);
    const [media] = lost.join.parts;
    const read = { paths: [media.prefix + media.manifest_path], method: "GET" };
    expectError(await sign(lost, read), 409, "stale_lease");
    expect((await callback(again, "release")).body).toMatchObject({ id: job.id, status: "running" });
    const left = [await claimed(), await claimed()];
    expect(left.map(startOf).toSorted()).toEqual([0, 82_000]);
    for (const each of left) await recognize(each);
    expect((await claimed()).speech.step).toBe("join");
  });

  test("are one job with attempts of its parts: one that fails too often fails all, as does a fault of the audio", async () => {
    const max = app.opened.app.config.max_attempts;
    for (const retryable of [true, false]) {
      const job = await divided(2);
      const [first, second] = [await claimed(), await claimed()];
      const fault = { code: "transcription_failed", message: "It answered 503.", retryable };
      let { body } = await callback(first, "fail", fault);
      for (let attempt = 2; retryable && attempt <= max; attempt++) {
        expect(body).toMatchObject({ id: job.id, status: "running" });
        expect((await claim()).status).toBe(204);
        app.advance(60_000);
        await callback(second, "heartbeat");
        const again = await claimed();
        expect([startOf(again), again.job.attempt]).toEqual([0, attempt]);
        ({ body } = await callback(again, "fail", fault));
      }
      expect(body).toMatchObject({ status: "failed", error: { code: "transcription_failed" } });
      expect(await jobOf(job)).toMatchObject({ status: "failed", parts: null });
      expectError(await callback(second, "heartbeat"), 409, "stale_lease");
      expect((await claim()).status).toBe(204);
    }
    const { error } = (await tracks())[0];
    expect(error).toMatchObject({ code: "transcription_failed", message: "It answered 503." });
  });

  test("fail when the workers of one part are lost too often", async () => {
    const job = await divided(2);
    for (let attempt = 1; attempt <= app.opened.app.config.max_attempts; attempt++) {
      expect((await claimed()).job.attempt).toBe(attempt);
      app.advance(10 * 60_000);
    }
    expect((await claim()).status).toBe(204);
    expect(await jobOf(job)).toMatchObject({ status: "failed", error: { code: "worker_lost" } });
  });

  test("without anything that is heard have failed with no_speech", async () => {
    const job = await generate();
    const { body } = await callback(await claimed(), "complete", { parts: [] });
    const error = { code: "no_speech", message: "No speech was recognized." };
    expect(body).toMatchObject({ id: job.id, status: "failed", error });
    expect(await tracks()).toMatchObject([{ status: "failed", error }]);
  });

  test("that were canceled end the leases of all parts", async () => {
    await divided(2);
    const part = await claimed();
    expect((await app.as(key).deleteSubtitle(asset.id, (await tracks())[0].id)).status).toBe(204);
    expectError(await callback(part, "heartbeat"), 409, "stale_lease");
    expect((await claim()).status).toBe(204);
  });

  test.each(["fail", "complete", "join"])("of media that are replaced are recognized again: %s", async (when) => {
    const job = await divided(2);
    const part = await claimed();
    if (when === "join") for (const each of [part, await claimed()]) await recognize(each);
    expect((await app.as(key).reencodeAsset(asset.id)).status).toBe(202);
    await encode((await next(app, `again-${++claims}`)).body);
    if (when === "join") await publish(await claimed());
    else expect((await callback(part, when, { speech: speech("old") })).status).toBe(200);
    expect(await jobOf(job)).toMatchObject({ status: "queued", parts: null, progress: 0 });
    const again = await claimed();
    expect([again.speech.step, again.job.attempt]).toEqual(["plan", 1]);
  });
});

describe("the language of long audio", () => {
  test.each<[string, (string | null)[], string | null]>([
    ["is that of the first, a middle and the last part", ["de", "de-AT", "de"], null],
    ["is detected once where they agree", ["de", "de", "de"], "de"],
    ["is that of the parts in which something is said", ["de", null, "de"], "de"],
    ["is detected in each part where they differ", ["de", "fr", "de"], null],
    ["is unknown to an engine that detects none", [null, null, null], null],
    ["is detected in each part where it is undetermined", ["und", "und", "und"], null],
  ])("%s", async (_, detected, language) => {
    await divided(5, { language: "auto" });
    const samples = [await claimed(), await claimed(), await claimed()];
    expect(samples.map(startOf)).toEqual([0, 2, 4].map((number) => number * 41_000));
    expect(samples.map((each) => each.speech.language)).toEqual([null, null, null]);
    // The others wait.
    expect((await claim()).status).toBe(204);
    for (const [index, each] of samples.entries())
      await recognize(each, detected[index] === null ? null : "Hallo", detected[index] ?? "xx");
    const others = [await claimed(), await claimed()];
    expect(others.map((each) => [startOf(each), each.speech.language])).toEqual([
      [41_000, language],
      [123_000, language],
    ]);
    // By which the audio rendition is chosen: that of the samples.
    expect(others.map((each) => each.speech.requested_language)).toEqual([null, null]);
    for (const each of others) await recognize(each);
    expect((await claimed()).speech.step).toBe("join");
  });
});

test("parts that wait for a language are not delayed by a clock that is set back meanwhile", async () => {
  await divided(5, { language: "auto" });
  const samples = [await claimed(), await claimed(), await claimed()];
  app.advance(-3_600_000);
  try {
    for (const each of samples) await recognize(each);
    expect([startOf(await claimed()), startOf(await claimed())]).toEqual([41_000, 123_000]);
  } finally {
    app.advance(3_600_000);
  }
});

describe("workers and queues", () => {
  test.each([1, 2])(
    "a worker with captions %i gets them in the lane of encodes, when nothing else is queued",
    async (captions) => {
      const short = await longAsset(key, 100);
      const { id } = await generate({ language: "en" }, short);
      const answer = await next(app, `main-${++claims}`, { worker_id: "main", capabilities: { captions } });
      expect(answer.status).toBe(200);
      expect(answer.body.speech.language).toBe("en");
      expect((await publish(answer.body)).body).toMatchObject({ id, status: "completed" });
      await app.as(key).deleteAsset(short.id);
    },
  );

  test("audio that is short, and workers of earlier versions, get all of it at once", async () => {
    const short = await longAsset(key, 100);
    await generate({ language: "en" }, short);
    expect((await claimed()).speech).not.toHaveProperty("step");
    await generate();
    const whole = await claimed(1);
    expect(whole.speech).not.toHaveProperty("step");
    expect((await publish(whole)).body.status).toBe("completed");
    await generate();
    await callback(await claimed(), "complete", { parts: planOf(1) });
    expect((await claim(1)).status).toBe(204);
    await recognize(await claimed());
    expect((await claim(1)).status).toBe(204);
    expect((await claimed()).speech.step).toBe("join");
    await app.as(key).deleteAsset(short.id);
  });

  test("wait for encodes, for a quarter of an hour", async () => {
    await divided(2);
    const { asset: encoded } = await uploaded(app, key);
    expect((await claim()).status).toBe(204);
    app.advance(16 * 60_000);
    expect(startOf(await claimed())).toBe(0);
    await app.as(key).deleteAsset(encoded.id);
    expect(startOf(await claimed())).toBe(41_000);
  });

  test("the parts of a tenant's long audio alternate with the captions of another", async () => {
    const other = await app.key((await app.tenant()).id);
    const theirs = await longAsset(other, 60);
    const second = await longAsset(other, 60);
    await divided(5);
    expect(startOf(await claimed())).toBe(0);
    await generate({ language: "en" }, theirs, other);
    await generate({ language: "en" }, second, other);
    const order = [];
    for (let count = 0; count < 6; count++) {
      const { speech: work, join } = await claimed();
      order.push(work.part?.start_ms ?? join.parts[0].asset_id);
    }
    expect(order.slice(0, 4).toSorted((one, two) => one - two)).toEqual(
      [theirs.id, second.id, 41_000, 82_000].toSorted((one, two) => one - two),
    );
    expect(order.slice(4)).toEqual([123_000, 164_000]);
    for (const { id } of [theirs, second]) await app.as(other).deleteAsset(id);
  });

  test("a repeated claim gets the same part, and a worker reads nothing but the media and writes nothing", async () => {
    await divided(2);
    const claimAgain = () =>
      next(app, "same-part", { worker_id: "w1", lane: "captions", capabilities: { captions: 2 } });
    const [first, second] = [(await claimAgain()).body, (await claimAgain()).body];
    expect([second.callbacks, second.lease.token]).toEqual([first.callbacks, first.lease.token]);
    const [media] = first.join.parts;
    const { body } = await sign(first, { paths: [media.prefix + media.manifest_path], method: "GET" });
    expect((await app.call("GET", body[0].url)).text).toContain("#EXTM3U");
    for (const [path, method] of [
      [first.speech.path, "PUT"],
      [media.prefix + media.manifest_path, "PUT"],
      ["tenants/1/x", "GET"],
      [`${media.prefix}../x`, "GET"],
    ])
      expectError(await sign(first, { paths: [path], method }), 422, "validation_failed");
    await recognize(first);
    expectError(await app.call("GET", body[0].url), 403, "address_revoked");
  });

  test("a plan, and what is recognized, are checked; the lease stays", async () => {
    const job = await generate();
    const plan = await claimed();
    for (const [name, parts] of BAD_PLANS) expect((await callback(plan, "complete", { parts })).status, name).toBe(422);
    expect((await callback(plan, "complete", {})).body.code).toBe("invalid_transcoding_result");
    expect(await jobOf(job)).toMatchObject({ status: "running", parts: null });
    await callback(plan, "complete", { parts: planOf(1) });
    const part = await claimed();
    for (const [name, body, status] of BAD_SPEECH)
      expect((await callback(part, "complete", body)).status, name).toBe(status);
    await recognize(part);
  });

  test("many parts are read in pages", async () => {
    await divided(20);
    for (let number = 0; number < 20; number++) await recognize(await claimed(), `part ${number}`);
    const join = await claimed();
    const texts: string[] = [];
    let pages = 0;
    for (let url = join.speech.parts_url; url !== null; pages++) {
      const { body } = await app.call("GET", url, { worker: app.worker, lease: join.lease.token });
      texts.push(...body.parts.map(({ utterances }: { utterances: { text: string }[] }) => utterances[0]?.text));
      url = body.next;
    }
    expect(texts).toEqual(Array.from({ length: 20 }, (_, number) => `part ${number}`));
    expect(pages).toBeGreaterThan(1);
    const bad = join.speech.parts_url.replace(/from=.*/, "from=x");
    expectError(await app.call("GET", bad, { worker: app.worker, lease: join.lease.token }), 422, "validation_failed");
  });
});

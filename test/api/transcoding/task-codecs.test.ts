import { beforeEach, describe, expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import { completeEarly, EARLY_PLAN, publishedEarly, requestEarly, storeEarly } from "#test/support/early.ts";
import { next, uploaded } from "#test/support/flow.ts";
import { finish, nextTask, planned } from "#test/support/tasks.ts";

/** Jobs that are also encoded with HEVC and AV1. */
let app: TestApp;
let key: string;
const fields = { encoding_profile: "modern" };
beforeEach(async () => {
  app = await testApp({ lease_seconds: 60, rate_limit_uploads: "10000/60" });
  app.stopClock();
  key = await app.key((await app.tenant()).id);
  const profile = { name: "modern", codecs: ["h264", "hevc", "av1"] };
  const created = await app.as({ admin: app.admin }).createEncodingProfile(profile);
  expect(created.status, created.text).toBe(201);
});

/**
 * A claim of a worker of an earlier version, which would encode only H.264 in a chunk (1), or encode what is to be copied (2), and of
 * one of this version.
 */
const claim =
  (tasks: number) =>
  (more: Record<string, unknown> = {}) =>
    nextTask(app, undefined, { worker_id: `w${tasks}`, capabilities: { tasks }, ...more });
const current = claim(3);

describe.each([1, 2])("a worker of the earlier version %i", (version) => {
  const earlier = claim(version);

  test.each(["modern", "vr"])("gets the job as a whole: %s", async (encoding_profile) => {
    const { job } = await uploaded(app, key, { encoding_profile });
    const { body } = await earlier();
    expect([body.job.id, body.task]).toEqual([job.id, undefined]);
  });

  test("gets no chunk of a job whose original may be copied", async () => {
    await uploaded(app, key, { encoding_profile: "vr" });
    await finish(app, (await current()).body, { has_audio: false });
    expect((await earlier()).status).toBe(204);
    expect((await current()).body.task.kind).toBe("chunk");
  });

  test("gets the audio of a job that has begun, but no chunk, and no manifests to write", async () => {
    await uploaded(app, key, fields);
    const { body: plan } = await current();
    expect(plan.task.kind).toBe("plan");
    await finish(app, plan);
    const { body: audio } = await earlier();
    expect(audio.task.kind).toBe("audio");
    await finish(app, audio);
    expect((await earlier()).status).toBe(204);
    for (let i = 0; i < 5; i++) {
      const { body: chunk } = await current();
      expect(chunk.task.kind).toBe("chunk");
      await finish(app, chunk);
    }
    expect((await earlier()).status).toBe(204);
    expect((await earlier({ lane: "light" })).status).toBe(204);
    expect((await current()).body.task.kind).toBe("images");
  });

  test("gets the chunks of other jobs meanwhile", async () => {
    await uploaded(app, key, fields);
    await finish(app, (await current()).body, { has_audio: false });
    const other = await uploaded(app, key);
    const kinds: string[] = [];
    for (let body = (await earlier()).body; body; body = (await earlier()).body) {
      expect(body.job.id).toBe(other.job.id);
      kinds.push(body.task.kind);
      await finish(app, body);
    }
    expect(kinds).toEqual(["plan", "audio", ...Array(5).fill("chunk"), "images"]);
  });

  test("waits for a job until there is one that it can do", async () => {
    await uploaded(app, key, fields);
    await finish(app, (await current()).body, { has_audio: false });
    const waiting = earlier({ wait_seconds: 20 });
    const other = await uploaded(app, key);
    expect((await waiting).body.job.id).toBe(other.job.id);
  });

  test("does not plan early playback next to a long task", async () => {
    await uploaded(app, key, { ...fields, early_playback: true });
    expect((await earlier({ lane: "light" })).status).toBe(204);
    expect((await current({ lane: "light" })).body.task.kind).toBe("plan");
  });

  test("may report that the source is not cut", async () => {
    await uploaded(app, key, fields);
    await finish(app, (await current()).body, planned({ uncuttable: "additional_codecs" }));
    expect((await earlier()).body.task.kind).toBe("whole");
  });
});

test("a worker that takes no tasks gets the job as a whole", async () => {
  const { job } = await uploaded(app, key, fields);
  expect((await next(app)).body.job.id).toBe(job.id);
});

describe("early playback", () => {
  const primary = EARLY_PLAN.early.renditions;
  const of = (codec: string) => primary.map((one) => ({ ...one, name: `${one.name}-${codec}`, codec }));
  const renditions = [...primary, ...of("hevc"), ...of("av1")];
  const names = (all: readonly { name: string }[]) => all.map(({ name }) => name).join(" ");
  const plan = { plan: { renditions: renditions.map(({ name }) => name) }, early: { segments: 25, renditions } };

  /** Completes all tasks: the first segment and the renditions of each chunk, in order, and how often each segment was encoded. */
  async function rest(...running: any[]) {
    const order: [number, string][] = [];
    const counts = new Map<string, number>();
    const complete = async (contract: any) => {
      const { chunk } = contract.task;
      const end = chunk.first_segment + (chunk.segments ?? 25 - chunk.first_segment);
      for (const name of chunk.renditions)
        for (let n = chunk.first_segment; n < end; n++)
          counts.set(`${name} ${n}`, (counts.get(`${name} ${n}`) ?? 0) + 1);
      await completeEarly(app, contract);
    };
    for (const one of running) await complete(one);
    for (;;) {
      const { body } = await current();
      if (body.task.kind === "images") {
        expect(body.task.written.map(({ segments }: any) => segments.length)).toEqual(Array(10).fill(25));
        await finish(app, body);
        return { order, counts };
      }
      order.push([body.task.chunk.first_segment, body.task.chunk.renditions.join(" ")]);
      await complete(body);
    }
  }

  async function begun() {
    const early = await publishedEarly(app, key, { ...fields, plan, claim: current });
    await completeEarly(app, (await current()).body);
    const { body: lead } = await current();
    expect(lead.task.chunk).toMatchObject({ first_segment: 1, renditions: ["480p", "360p"] });
    return { early, lead };
  }

  test("begins with H.264, all of which is encoded before the other codecs", async () => {
    const { lead } = await begun();
    app.advance(3000);
    const { order, counts } = await rest(lead);
    expect(order).toEqual([
      ...[3, 8, 14, 19].map((first) => [first, names(primary)]),
      [0, "720p"],
      ...[0, 5, 10, 15, 20].flatMap((first) => [
        [first, names(of("hevc"))],
        [first, names(of("av1"))],
      ]),
    ]);
    // The first three low segments have been encoded before.
    expect([...counts.values()].every((count) => count === 1)).toBe(true);
    expect(counts.size).toBe(9 * 25 - 2);
  });

  test("encodes all of H.264 before the other codecs where the copy is one of those", async () => {
    const copied = renditions.map((one) => ({ ...one, is_copied: one.name === "720p-hevc" }));
    const frames = Array.from({ length: 25 }, (_, segment) => segment * 120);
    const own = { ...plan, segment_frames: frames, early: { segments: 25, renditions: copied } };
    await publishedEarly(app, key, { ...fields, plan: own, claim: current });
    await completeEarly(app, (await current()).body);
    const { body: lead } = await current();
    // With a copy in H.264, the copy would be among these.
    expect(lead.task.chunk).toMatchObject({ first_segment: 1, renditions: ["480p", "360p"] });
    app.advance(3000);
    const { order, counts } = await rest(lead);
    expect(order.slice(0, 5)).toEqual([...[3, 8, 14, 19].map((first) => [first, names(primary)]), [0, "720p"]]);
    expect(order.slice(5).every(([, all]) => all.includes("-"))).toBe(true);
    expect([...counts.values()].every((count) => count === 1)).toBe(true);
  });

  test("on a slow machine all renditions of H.264 precede the other codecs too", async () => {
    const { lead } = await begun();
    app.advance(5000);
    const { order, counts } = await rest(lead);
    const codecs = order.map(([, all]) => (all.includes("-") ? "other" : "primary"));
    expect(codecs).toEqual([...Array(9).fill("primary"), ...Array(10).fill("other")]);
    expect([...counts.values()].every((count) => count === 1)).toBe(true);
  });

  test("encodes a requested segment of another codec next, and those that follow it", async () => {
    const { early, lead } = await begun();
    app.advance(3000);
    const path = "480p-av1/00011.m4s";
    const answer = requestEarly(app, early, path);
    await expect
      .poll(async () => (await current({ lane: "urgent", worker_id: "urgent" })).body?.task?.chunk, { interval: 20 })
      .toMatchObject({ first_segment: 10, segments: 1, renditions: ["480p-av1"], is_urgent: true });
    await storeEarly(app, early.prefix, path);
    expect((await answer).status).toBe(200);
    const { body: ahead } = await current({ lane: "light", worker_id: "light" });
    expect(ahead.task.chunk).toMatchObject({ first_segment: 11, segments: 2, renditions: ["480p-av1"] });
    await completeEarly(app, lead);
    const { body: following } = await current();
    // H.264 from the requested segment on.
    expect(following.task.chunk.renditions.join(" ")).toBe(names(primary));
    expect(following.task.chunk.first_segment).toBe(14);
  });
});

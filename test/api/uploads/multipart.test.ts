import { createHash } from "node:crypto";
import { describe, expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import { expectError } from "#test/support/error.ts";
import { next } from "#test/support/flow.ts";

const PART = 16 * 2 ** 20;
const md5 = (bytes: Uint8Array) => `"${createHash("md5").update(bytes).digest("hex")}"`;
const contents = [Buffer.alloc(PART, "a"), Buffer.alloc(PART, "b"), Buffer.from("the end")] as [Buffer, Buffer, Buffer];
const whole = Buffer.concat(contents);
const named = contents.map((bytes, index) => ({ part_number: index + 1, etag: md5(bytes) }));

async function begun(flags: Record<string, unknown> = {}, bytes = whole.length) {
  const app = await testApp(flags);
  const key = await app.key((await app.tenant()).id);
  const { status, body } = await app
    .as(key)
    .initiateMultipartUpload({ filename: "a film.mp4", bytes_expected: bytes, content_type: "video/mp4" });
  expect(status).toBe(201);
  const ask = (action: string, fields?: unknown, id = body.id) =>
    app.call("POST", `/api/v1/uploads/${id}/${action}`, { key, ...(fields !== undefined && { body: fields }) });
  const put = async (number: number, part: Uint8Array = contents[number - 1] as Buffer) => {
    const signed = await ask("sign_part", { part_number: number });
    expect(signed.body).toMatchObject({ part_number: number, method: "PUT", expires_at: body.expires_at });
    return app.call(signed.body.method, signed.body.url, {
      raw: new Uint8Array(part),
      headers: { ...signed.body.headers, "content-length": String(part.length) },
    });
  };
  const state = async () => (await app.as(key).getUpload(body.id)).body;
  const complete = (parts: unknown = named, bytes_received = whole.length) =>
    ask("complete_multipart", { parts, bytes_received });
  return { app, key, upload: body, ask, put, state, complete };
}
const types = async (app: TestApp) => (await app.newEvents()).map(({ type }) => type);
const underWay = async (app: TestApp) => {
  const found: string[] = [];
  for await (const { uploadId } of app.opened.app.objects?.listMultiparts("tenants/") ?? []) found.push(uploadId);
  return found;
};
const objects = async (app: TestApp) => (await app.opened.app.objects?.list(""))?.objects.length;

test("parts in any order and repeated, listed for resuming, become the source once", async () => {
  const { app, upload, ask, put, state, complete } = await begun();
  expect(upload).toMatchObject({ status: "pending", part_size: PART, part_count: 3 });
  expect(upload.upload_id).toMatch(/^\w+$/);
  expect(upload).not.toHaveProperty("upload_url");
  const answer = await put(3);
  expect([answer.status, answer.headers.get("etag")]).toEqual([200, named[2]?.etag]);
  await put(1, Buffer.alloc(100, "x"));
  await put(1);
  expect(await state()).toMatchObject({
    upload_id: upload.upload_id,
    parts: [
      { ...named[0], bytes: PART },
      { ...named[2], bytes: 7 },
    ],
  });
  await put(2);
  expect(await types(app)).toEqual([]);
  // Clients quote ETags or not, and list parts in any order.
  const loose = named.map(({ part_number, etag }) => ({ part_number, etag: etag.replaceAll('"', "") })).reverse();
  const done = await complete(loose);
  expect(done.body).toMatchObject({ status: "completed", bytes_received: whole.length });
  expect(done.body.asset).toMatchObject({ source_bytes: whole.length, input_status: "uploaded" });
  expect(await types(app)).toEqual(["video.upload.completed", "video.job.queued"]);
  for (const again of [await complete(), await complete([{ part_number: 9, etag: "x" }], 1)])
    expect([again.status, again.text]).toEqual([200, done.text]);
  expect(await types(app)).toEqual([]);
  expect(await state()).not.toHaveProperty("parts");
  expectError(await ask("sign_part", { part_number: 1 }), 409, "upload_conflict");
  expectError(await ask("abort_multipart"), 409, "upload_conflict");
  const { body: contract } = await next(app);
  const source = await app.opened.server.fetch(new Request(contract.source.url));
  expect(whole.equals(Buffer.from(await source.arrayBuffer()))).toBe(true);
  expect(await underWay(app)).toEqual([]);
});

test("ten concurrent completions create one job and return one response", async () => {
  const { app, put, complete } = await begun();
  await Promise.all([put(1), put(2), put(3)]);
  const answers = await Promise.all(Array.from({ length: 10 }, () => complete()));
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
  expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
  expect(await types(app)).toEqual(["video.upload.completed", "video.job.queued"]);
  expect([(await next(app)).status, (await next(app)).status]).toEqual([200, 204]);
});

test("a complete that does not match the stored parts changes nothing, and the upload stays pending", async () => {
  const { app, put, complete, state } = await begun();
  const [one, two, three] = named as [(typeof named)[0], (typeof named)[0], (typeof named)[0]];
  expectError(await complete(), 422, "bytes_mismatch", "nothing was put");
  await put(1);
  await put(3);
  const wrong = { part_number: 2, etag: md5(Buffer.from("another")) };
  expectError(await complete([one, two, three]), 422, "bytes_mismatch", "a missing part");
  await put(2);
  const cases: [string, unknown, number, string][] = [
    ["a wrong ETag", [one, wrong, three], whole.length, "parts"],
    ["a gap", [one, three], PART + 7, "parts"],
    ["a part twice", [one, one, two, three], whole.length + PART, "bytes_received"],
    ["fewer bytes", named, whole.length - 1, "bytes_received"],
    ["more bytes", named, whole.length + 1, "bytes_received"],
    ["no bytes", named, 0, "bytes_received"],
  ];
  for (const [what, parts, bytes, field] of cases) {
    const refused = await complete(parts, bytes);
    expectError(refused, 422, "bytes_mismatch", what);
    expect(Object.keys(refused.body.details), what).toEqual([field]);
  }
  expectError(await complete([]), 422, "validation_failed");
  expectError(await complete([{ part_number: 0, etag: "x" }]), 422, "validation_failed");
  expectError(await complete([{ part_number: 1 }]), 422, "parameter_missing");
  expect((await state()).parts).toHaveLength(3);
  expect(await types(app)).toEqual([]);
  // A file that is smaller than announced.
  expect((await complete([one, two], 2 * PART)).body).toMatchObject({ status: "completed", bytes_received: 2 * PART });
});

describe("an abort", () => {
  test("deletes all parts, emits one event, is idempotent, and ends the session", async () => {
    const { app, upload, ask, put, complete, state } = await begun();
    await put(1);
    for (let time = 0; time < 3; time++) {
      const answer = await ask("abort_multipart");
      expect([answer.status, answer.text]).toEqual([204, ""]);
    }
    expect(await app.newEvents()).toMatchObject([
      { type: "video.upload.failed", data: { upload_id: upload.id, asset_id: String(upload.asset_id) } },
    ]);
    expect(await state()).toMatchObject({ status: "aborted" });
    expect(await underWay(app)).toEqual([]);
    expectError(await complete(), 409, "upload_conflict");
    expectError(await ask("sign_part", { part_number: 2 }), 409, "upload_conflict");
  });

  test("aborts a part in progress", async () => {
    const { app, upload, ask } = await begun();
    const { body: signed } = await ask("sign_part", { part_number: 1 });
    const asked = Promise.withResolvers<void>();
    const late = Promise.withResolvers<void>();
    const source = {
      async pull(controller: ReadableStreamDefaultController) {
        asked.resolve();
        await late.promise;
        controller.enqueue(contents[0]);
        controller.close();
      },
    };
    const putting = app.call("PUT", signed.url, { raw: new ReadableStream(source, { highWaterMark: 0 }) });
    await asked.promise;
    expect((await ask("abort_multipart")).status).toBe(204);
    late.resolve();
    expectError(await putting, 403, "address_revoked");
    expectError(await app.call("PUT", signed.url, { raw: "x" }), 403, "address_revoked");
    expect([upload.status, await objects(app), await underWay(app)]).toEqual(["pending", 0, []]);
  });
});

test("an ended session has no parts left, and one that exists only in storage is swept", async () => {
  const { app, put, state, complete } = await begun({ upload_ttl_seconds: 600 });
  await put(1);
  const store = app.opened.app.objects;
  // What a crash leaves between storage and row.
  const dangling = await store?.createMultipart("tenants/1/sources/lost.mp4", { bytes: PART, partSize: PART });
  app.advance(601_000);
  expectError(await complete(), 409, "upload_conflict");
  await app.runTask("expire-uploads");
  expect(await types(app)).toEqual(["video.upload.failed"]);
  expect(await state()).toMatchObject({ status: "expired" });
  expect(await underWay(app)).toEqual([dangling]);
  await app.runTask("sweep-parts");
  expect(await underWay(app)).toEqual([dangling]);
  app.advance(86_400_000);
  await app.runTask("sweep-parts");
  expect(await underWay(app)).toEqual([]);
});

test("the number of a part, its size and its session are checked", async () => {
  const { app, key, upload, ask, put } = await begun();
  for (const number of [0, -1, 4, 1.5, 10_001])
    expectError(await ask("sign_part", { part_number: number }), 422, "validation_failed", String(number));
  expectError(await ask("sign_part", {}), 422, "parameter_missing");
  expectError(await put(3, Buffer.from("the end!")), 413, "payload_too_large", "longer than the rest");
  expect((await put(3)).status).toBe(200);
  const single = await app.as(key).initiateUpload({ filename: "a.mp4", bytes_expected: 3 });
  for (const [action, body] of [
    ["sign_part", { part_number: 1 }],
    ["complete_multipart", { parts: named, bytes_received: 3 }],
    ["abort_multipart", undefined],
  ] as const)
    expectError(await ask(action, body, single.body.id), 409, "upload_conflict", action);
  expectError(await ask("complete", { bytes_received: whole.length }), 409, "upload_conflict");
  const [path, query] = (await ask("sign_part", { part_number: 1 })).body.url.split("?");
  const other = `${path}?${query.replace("part_number=1", "part_number=2")}`;
  expectError(await app.call("PUT", other, { raw: "x" }), 403, "address_invalid");
  expect(upload.part_count).toBe(3);
});

test("parts are few enough for every store, and large enough", async () => {
  for (const [bytes, size, count] of [
    [0, PART, 1],
    [1, PART, 1],
    [PART + 1, PART, 2],
    [64 * 2 ** 30, PART, 4096],
  ] as const)
    expect((await begun({}, bytes)).upload, String(bytes)).toMatchObject({ part_size: size, part_count: count });
  const huge = 2 ** 40;
  const { upload } = await begun({ max_upload_bytes: huge }, huge);
  expect(upload.part_count).toBeLessThanOrEqual(10_000);
  expect(upload.part_count * upload.part_size).toBeGreaterThanOrEqual(huge);
});

test("an initiate repeated with its key returns the same upload, including upload_id", async () => {
  const app = await testApp();
  const key = await app.key((await app.tenant()).id);
  const initiate = () =>
    app
      .as({ key, headers: { "idempotency-key": "once" } })
      .initiateMultipartUpload({ filename: "a.mp4", bytes_expected: 5 });
  const answers = [...(await Promise.all([initiate(), initiate(), initiate()])), await initiate()];
  for (const { status, body } of answers) expect([status, body]).toEqual([201, answers[0]?.body]);
  expect(await underWay(app)).toEqual([answers[0]?.body.upload_id]);
});

test("without object storage, parts are 503", async () => {
  const app = await testApp({ storage: "none" });
  const key = await app.key((await app.tenant()).id);
  const body = { filename: "a.mp4", bytes_expected: 3 };
  expectError(await app.as(key).initiateMultipartUpload(body), 503, "storage_not_configured");
  for (const [action, fields] of [
    ["sign_part", { part_number: 1 }],
    ["complete_multipart", { parts: named, bytes_received: 3 }],
    ["abort_multipart", undefined],
  ] as const) {
    const answer = await app.call("POST", `/api/v1/uploads/1/${action}`, { key, ...(fields && { body: fields }) });
    expectError(answer, 503, "storage_not_configured", action);
  }
});

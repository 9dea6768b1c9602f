import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import { leased, tiny, tinyAsset } from "#test/support/batches.ts";
import { expectError } from "#test/support/error.ts";

const PART = 16 * 2 ** 20;
const sha256 = (bytes: Uint8Array | string) => createHash("sha256").update(bytes).digest("hex");
const begun = async (flags: Record<string, unknown> = {}, fields: Record<string, unknown> = {}) => {
  const app = await testApp({ rate_limit_uploads: "100000/60", ...flags });
  const key = await app.key((await app.tenant()).id);
  return { app, key, ...(await leased(app, key, fields)) };
};
const objects = async (app: TestApp) => (await app.opened.app.objects?.list(""))?.objects.map(({ key }) => key) ?? [];
const underWay = async (app: TestApp) => {
  const found: string[] = [];
  for await (const { uploadId } of app.opened.app.objects?.listMultiparts("tenants/") ?? []) found.push(uploadId);
  return found.length;
};
const bytesOf = async (app: TestApp, name: string) => {
  const key = (await objects(app)).find((each) => each.endsWith(name)) as string;
  const found = await app.opened.app.objects?.get(key);
  return Buffer.concat((await found?.body.toArray()) ?? []);
};

test("one PUT of exactly the announced size; a repeated request returns the same upload", async () => {
  const { app, want, ask } = await begun();
  const first = await want("a/b.m4s", "hello");
  expect(first.status).toBe(201);
  expect(first.body).toMatchObject({
    object_key: "a/b.m4s",
    status: "pending",
    mode: "put",
    bytes_expected: 5,
    part_size: null,
  });
  const again = await want("a/b.m4s", "hello");
  expect([again.status, again.body.id]).toEqual([200, first.body.id]);
  const complete = (bytes = 5) =>
    ask("POST", `/uploads/${first.body.id}/complete`, { body: { bytes_received: bytes } });
  const put = (raw: string) => app.call("PUT", again.body.upload_url, { raw, headers: again.body.upload_headers });
  expectError(await complete(), 422, "bytes_mismatch", "no content");
  expectError(await put("hello!"), 413, "payload_too_large");
  expect((await put("hell")).status).toBe(200);
  expectError(await complete(), 422, "bytes_mismatch", "too few bytes");
  expectError(await complete(4), 422, "bytes_mismatch", "not the announced size");
  expect((await put("hello")).status).toBe(200);
  const done = await complete();
  expect(done.body).toMatchObject({ status: "completed", bytes_received: 5 });
  expect((await complete()).text).toBe(done.text);
  expectError(await put("other"), 409, "upload_conflict", "a completed object does not change");
  expectError(await ask("DELETE", `/uploads/${first.body.id}`), 409, "upload_conflict");
  const resumed = await want("a/b.m4s", "hello");
  expect([resumed.status, resumed.body.status, resumed.body.upload_url]).toEqual([200, "completed", undefined]);
  // Another size means another object: the old one is gone until the new one arrives.
  const other = await want("a/b.m4s", "longer text");
  expect([other.status, other.body.id === first.body.id]).toEqual([201, false]);
  expect(await objects(app)).toEqual([]);
});

test("parts are presigned individually, and recorded for a client that resumes without state", async () => {
  const { app, key, path, ask, want } = await begun();
  const bytes = Buffer.concat([Buffer.alloc(PART, "a"), Buffer.from("tail")]);
  const { body: batchUpload } = await want("film.mp4", bytes, { multipart: true });
  expect(batchUpload).toMatchObject({ mode: "multipart", part_size: PART, part_count: 2, parts: [] });
  const sign = (part_number: number, more = {}) =>
    ask("POST", `/uploads/${batchUpload.id}/parts`, { body: { part_number, ...more } });
  const put = async (number: number, raw: Uint8Array) => {
    const signed = await sign(number);
    expect(signed.status, signed.text).toBe(201);
    return app.call("PUT", signed.body.url, { raw: new Uint8Array(raw), headers: signed.body.headers });
  };
  expectError(await sign(3), 422, "validation_failed");
  expectError(await sign(2, { bytes: 5 }), 422, "validation_failed");
  expectError(await ask("POST", `/uploads/${batchUpload.id}/parts`, { body: {} }), 422, "parameter_missing");
  const etag = (await put(1, bytes.subarray(0, PART))).headers.get("etag");
  const confirm = (number: number, tag: string | null) =>
    ask("POST", `/uploads/${batchUpload.id}/parts/${number}/complete`, { body: { etag: tag } });
  expectError(await confirm(1, '"other"'), 422, "bytes_mismatch");
  expectError(await confirm(2, etag), 422, "bytes_mismatch");
  expect((await confirm(1, etag)).body).toEqual({ part_number: 1, bytes: PART, etag });
  const complete = (body: unknown) => ask("POST", `/uploads/${batchUpload.id}/complete`, { body });
  expectError(await complete({ bytes_received: bytes.length }), 422, "bytes_mismatch", "a part is missing");

  // The client restarts and knows only the batch.
  const { body: listed } = await app.call("GET", `${path}/uploads?status=pending`, { key });
  expect(listed).toMatchObject([
    { id: batchUpload.id, bytes_received: PART, parts: [{ part_number: 1, bytes: PART, etag }], part_count: 2 },
  ]);
  expect((await want("film.mp4", bytes, { multipart: true })).body).toMatchObject({
    id: batchUpload.id,
    parts: [{ etag }],
  });
  const last = (await put(2, bytes.subarray(PART))).headers.get("etag");
  const parts = [
    { part_number: 1, etag },
    { part_number: 2, etag: last },
  ];
  expect((await complete({ parts, bytes_received: bytes.length })).body).toMatchObject({ status: "completed" });
  expect((await complete({ bytes_received: bytes.length })).body).toMatchObject({ status: "completed" });
  expect(bytes.equals(await bytesOf(app, "film.mp4"))).toBe(true);
  expect(await underWay(app)).toBe(0);
});

test("through the service: complete, verified, and of exactly the announced size", async () => {
  const { app, ask, want } = await begun();
  const digest = sha256("subtitle");
  const { body: batchUpload } = await want("en.vtt", "subtitle", { mode: "proxy", sha256: digest });
  expect(batchUpload).toMatchObject({ mode: "proxy", upload_url: expect.stringMatching(/\/uploads\/\d+\/proxy$/) });
  const send = (raw: string, headers = {}) => ask("PUT", `/uploads/${batchUpload.id}/proxy`, { raw, headers });
  expectError(await send("subtitles"), 413, "payload_too_large");
  expectError(await send("x", { "content-length": "9" }), 413, "payload_too_large");
  expectError(await send("subtitl"), 422, "bytes_mismatch");
  expectError(await send("SUBTITLE"), 422, "sha256_mismatch");
  expect(await objects(app)).toEqual([]);
  expect((await send("subtitle")).body).toMatchObject({ status: "completed", bytes_received: 8 });
  expectError(await send("subtitle"), 409, "upload_conflict");
  const { body: direct } = await want("b.vtt", "x");
  expectError(await ask("PUT", `/uploads/${direct.id}/proxy`, { raw: "x" }), 409, "upload_conflict");
  expect((await bytesOf(app, "en.vtt")).toString()).toBe("subtitle");
});

test("through the service in parts", async () => {
  const { app, ask, want } = await begun();
  const bytes = Buffer.concat([Buffer.alloc(PART, "p"), Buffer.from("the end")]);
  const { body: batchUpload } = await want("big.m4s", bytes, { mode: "proxy" });
  const part = (number: number, raw: Uint8Array) =>
    ask("PUT", `/uploads/${batchUpload.id}/proxy_parts/${number}`, { raw: new Uint8Array(raw) });
  const complete = (part_count: number) =>
    ask("POST", `/uploads/${batchUpload.id}/proxy_complete`, { body: { part_count, bytes_received: bytes.length } });
  expectError(await complete(2), 422, "bytes_mismatch", "nothing has come");
  expect((await part(2, bytes.subarray(PART))).body).toMatchObject({ part_number: 2, bytes: 7 });
  expectError(await part(2, Buffer.from("the end!")), 413, "payload_too_large");
  expectError(await part(1, Buffer.from("short")), 422, "bytes_mismatch");
  expectError(await part(3, Buffer.from("x")), 422, "validation_failed");
  expectError(await part(0, Buffer.from("x")), 404, "not_found");
  expect((await part(1, bytes.subarray(0, PART))).status).toBe(200);
  // A part that is put again counts only when it is complete.
  expect((await ask("GET", "/uploads")).body[0].parts).toHaveLength(1);
  expect((await part(2, bytes.subarray(PART))).status).toBe(200);
  expect((await ask("GET", "/uploads")).body[0].parts).toHaveLength(2);
  expectError(await complete(3), 422, "bytes_mismatch");
  expect((await complete(2)).body).toMatchObject({ status: "completed" });
  expect((await complete(2)).status).toBe(200);
  expect(bytes.equals(await bytesOf(app, "big.m4s"))).toBe(true);
});

test("keys outside of the batch", async () => {
  const { want, ask, app } = await begun();
  const bad = [
    "",
    "/a",
    "a/",
    "a//b",
    ".",
    "..",
    "../a",
    "a/../b",
    "a/./b",
    "a\\b",
    "..\\a",
    "a\0b",
    "a\nb",
    "\u0085",
    "a\ud800",
    "x".repeat(201),
    "é".repeat(400),
    `${"a/".repeat(350)}bcd`,
  ];
  for (const object_key of bad)
    expectError(
      await ask("POST", "/uploads", { body: { object_key, bytes_expected: 1 } }),
      422,
      "validation_failed",
      JSON.stringify(object_key).slice(0, 40),
    );
  expectError(await ask("POST", "/uploads", { body: { bytes_expected: 1 } }), 422, "parameter_missing");
  for (const fields of [
    { bytes_expected: -1 },
    { mode: "tape" },
    { mode: "put", multipart: true },
    { content_type: "x" },
    { sha256: "x" },
    { bytes_expected: 2 ** 50 },
    { mode: "multipart", bytes_expected: 0 },
  ])
    expectError(await want("a", "x", fields), 422, "validation_failed", JSON.stringify(fields));
  expect(await objects(app)).toEqual([]);
  for (const good of ["a", "...", "a b/ü/日本.m4s", "%2e%2e/a", "a:b", "con"])
    expect((await want(good, "x")).status, good).toBe(201);
});

test("aborting one upload, and all of a batch", async () => {
  const { app, key, path, ask, want, put } = await begun();
  const { body: batchUpload } = await want("film.mp4", Buffer.alloc(PART + 1), { multipart: true });
  const { body: signed } = await ask("POST", `/uploads/${batchUpload.id}/parts`, { body: { part_number: 2 } });
  await app.call("PUT", signed.url, { raw: "x" });
  expect(await underWay(app)).toBe(1);
  for (let time = 0; time < 2; time++) expect((await ask("DELETE", `/uploads/${batchUpload.id}`)).status).toBe(204);
  expect(await underWay(app)).toBe(0);
  expectError(await app.call("PUT", signed.url, { raw: "x" }), 403, "address_revoked");
  expectError(
    await ask("POST", `/uploads/${batchUpload.id}/parts`, { body: { part_number: 1 } }),
    409,
    "upload_conflict",
  );
  expect((await app.call("GET", path, { key })).body.upload_count).toBe(0);
  await put("a.m4s", "abc");
  const { body: late } = await want("late.m4s", "abc");
  const canceled = await ask("POST", "/cancel");
  expect(canceled.body).toMatchObject({ status: "canceled" });
  expect((await ask("POST", "/cancel")).text).toBe(canceled.text);
  expect(await objects(app)).toEqual([]);
  expectError(
    await app.call("PUT", late.upload_url, { raw: "abc", headers: late.upload_headers }),
    403,
    "address_revoked",
  );
  for (const [method, rest, body] of [
    ["POST", "/uploads", { object_key: "x", bytes_expected: 1 }],
    ["POST", `/uploads/${late.id}/complete`, { bytes_received: 3 }],
    ["DELETE", `/uploads/${late.id}`, undefined],
    ["POST", "/manifest/preview", { assets: [tinyAsset()] }],
    ["POST", "/manifest/commit", { assets: [tinyAsset()] }],
  ] as const)
    expectError(await ask(method, rest, body && { body }), 409, "batch_conflict", rest);
  expect(await app.newEvents()).toEqual([]);
});

test("a lease that expires, and one that uploads renew", async () => {
  const { app, key, path, batch, ask, put, putAll, want, commit } = await begun({}, { expires_in: 600 });
  await putAll(tiny());
  app.advance(400_000);
  const { body: batchUpload } = await want("more.m4s", "abc", { multipart: true });
  await ask("POST", `/uploads/${batchUpload.id}/parts`, { body: { part_number: 1 } });
  const renewed = (await ask("GET", "")).body.expires_at;
  expect(Date.parse(renewed) - Date.parse(batch.expires_at)).toBeGreaterThan(390_000);
  app.advance(500_000);
  expect((await put("x.m4s", "abc")).status).toBe("completed");
  app.advance(601_000);
  expectError(await ask("GET", ""), 401, "unauthorized");
  const late = { key, body: { assets: [tinyAsset()] } };
  expectError(await app.call("POST", `${path}/manifest/commit`, late), 409, "batch_conflict");
  expectError(await commit(late.body), 401, "unauthorized");
  expect((await app.call("GET", path, { key })).body.status).toBe("expired");
  await app.runTask("expire-batches");
  expect((await app.call("GET", path, { key })).body).toMatchObject({
    status: "expired",
    ended_at: expect.any(String),
  });
  expect([await objects(app), await underWay(app)]).toEqual([[], 0]);
  // Bytes that arrived in the meantime.
  await app.opened.app.objects?.put(`${batch.storage.prefix}late.m4s`, Buffer.from("late"));
  await app.runTask("sweep-batches");
  expect(await objects(app)).toHaveLength(1);
  app.advance(2 * 3_600_000);
  await app.runTask("sweep-batches");
  expect(await objects(app)).toEqual([]);
});

test("parts live as long as the lease, and chunks are deleted with the batch", async () => {
  const { app, key, path, ask, want } = await begun({}, { expires_in: 604_800 });
  const { body: batchUpload } = await want("film.mp4", Buffer.alloc(PART + 1), { multipart: true });
  await ask("POST", `/uploads/${batchUpload.id}/parts`, { body: { part_number: 1 } });
  const { body: chunked } = await want("chunks.m4s", "abcdef");
  const headers = { ...chunked.upload_headers, "content-range": "bytes 0-2/6" };
  expect((await app.call("PUT", chunked.upload_url, { raw: "abc", headers })).status).toBe(308);
  const stored = `${(await ask("GET", "")).body.storage.prefix}chunks.m4s`;
  const appended = () => app.opened.app.objects?.appends?.held(stored);
  app.advance(4 * 86_400_000);
  await app.runTask("sweep-parts");
  expect([await underWay(app), await appended()]).toEqual([2, 3]);
  expect((await app.call("POST", `${path}/cancel`, { key })).status).toBe(200);
  expect([await underWay(app), await appended()]).toEqual([0, null]);
  app.advance(2 * 3_600_000);
  await app.runTask("sweep-batches");
  expect((await app.call("GET", `${path}/uploads`, { key })).body).toEqual([]);
});

test("uploads are listed page by page", async () => {
  const { app, key, path, want } = await begun();
  for (let number = 0; number < 5; number++) await want(`${number}.m4s`, "x");
  const seen: string[] = [];
  for (let next: string | undefined = `${path}/uploads?limit=2`; next; ) {
    const answer = await app.call("GET", next, { key });
    seen.push(...answer.body.map((one: { object_key: string }) => one.object_key));
    next = /<([^>]*)>/.exec(answer.headers.get("link") ?? "")?.[1];
  }
  expect(seen).toEqual(["0.m4s", "1.m4s", "2.m4s", "3.m4s", "4.m4s"]);
  expectError(await app.call("GET", `${path}/uploads?status=lost`, { key }), 422, "validation_failed");
});

test("a repeated create returns the same token, which is in no table", async () => {
  const { app, key } = await begun();
  const create = () => app.as({ key, headers: { "idempotency-key": "once" } }).createBatch({ name: "A" });
  const first = await create();
  const second = await create();
  expect([second.status, second.body]).toEqual([201, first.body]);
  expect(second.headers.get("idempotent-replayed")).toBe("true");
  const { db } = app.opened.app;
  const rows = JSON.stringify([
    await db.all("select * from idempotency_records"),
    await db.all("select * from ingest_batches"),
  ]);
  expect(rows).not.toContain(first.body.lease_token);
  // base64url itself may contain "_", therefore the prefix is matched as a whole.
  const secret = /^bat_\d+_(.{32,})$/.exec(first.body.lease_token)?.[1];
  expect(secret).toBeDefined();
  expect(rows).not.toContain(secret);
  const { body, text } = await app.as(key).getBatch(first.body.id);
  expect([body.id, text.includes("lease_token")]).toEqual([first.body.id, false]);
  for (const fields of [{ expires_in: 59 }, { expires_in: 700_000 }, { name: " " }])
    expectError(await app.as(key).createBatch(fields), 422, "validation_failed");
});

test("the limits for desktop clients are returned, without secrets", async () => {
  const { app, key } = await begun();
  const told = await app.as(key).getDesktopStorage();
  expect(told.body).toMatchObject({
    provider: "local",
    modes: ["put", "multipart", "proxy"],
    limits: { part_size: PART },
  });
  expectError(await app.as({ admin: app.admin }).getDesktopStorage(), 422, "parameter_missing");
  expect((await app.as({ admin: app.admin }).getDesktopStorage({ tenant_id: told.body.tenant_id })).body).toEqual(
    told.body,
  );
});

test("without object storage everything is 503", async () => {
  const app = await testApp({ storage: "none" });
  const key = await app.key((await app.tenant()).id);
  const routes = app.opened.routes.filter(
    ({ path }) => path.startsWith("/api/v1/ingest_batches") && !path.endsWith("/:id"),
  );
  expect(routes.length).toBeGreaterThan(12);
  const bodies: Record<string, unknown> = {
    preview: { assets: [tinyAsset()] },
    commit: { assets: [tinyAsset()] },
    uploads: { object_key: "a", bytes_expected: 1 },
    proxy_complete: { part_count: 1, bytes_received: 1 },
    parts: { part_number: 1 },
    complete: { bytes_received: 1, etag: "x" },
    ingest_batches: {},
  };
  for (const { method, path } of routes) {
    const named = path.replaceAll(/:\w+/g, "1");
    const body = bodies[named.split("/").at(-1) as string];
    const answer = await app.call(method, named, { key, ...(method === "POST" && body !== undefined && { body }) });
    if (method === "GET" && path.endsWith("/uploads")) expectError(answer, 404, "not_found");
    else expectError(answer, 503, "storage_not_configured", `${method} ${path}`);
  }
});

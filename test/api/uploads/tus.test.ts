import { createHash } from "node:crypto";
import { beforeEach, describe, expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import { expectError } from "#test/support/error.ts";
import { next } from "#test/support/flow.ts";

const TUS = "/api/v1/uploads/tus";
const VERSION = { "tus-resumable": "1.0.0" };
const BYTES = { ...VERSION, "content-type": "application/offset+octet-stream" };
const base64 = (text: string) => Buffer.from(text).toString("base64");
const metadata = (fields: Record<string, string>) =>
  Object.entries(fields)
    .map(([name, value]) => `${name} ${base64(value)}`)
    .join(",");

let app: TestApp;
let key: string;
beforeEach(async () => {
  app = await testApp({ upload_ttl_seconds: 600 });
  key = await app.key((await app.tenant()).id);
});

const create = (headers: Record<string, string> = {}, raw?: string) =>
  app.call("POST", TUS, { key, raw, headers: { ...VERSION, "upload-length": "10", ...headers } });
async function created(headers: Record<string, string> = {}) {
  const answer = await create(headers);
  expect(answer.status, answer.text).toBe(201);
  const at = answer.headers.get("location") as string;
  const id = Number(at.split("/").at(-1));
  return {
    at,
    id,
    head: () => app.call("HEAD", at, { key, headers: VERSION }),
    patch: (offset: number, raw: string | ReadableStream, more: Record<string, string> = {}) =>
      app.call("PATCH", at, { key, raw, headers: { ...BYTES, "upload-offset": String(offset), ...more } }),
    session: async () => (await app.as(key).getUpload(id)).body,
  };
}
const offsetIn = ({ status, headers }: { status: number; headers: Headers }) => [status, headers.get("upload-offset")];
const types = async () => (await app.newEvents()).map(({ type }) => type);
const underWay = async () => {
  const found: string[] = [];
  for await (const each of app.opened.app.objects?.listMultiparts("tenants/") ?? []) found.push(each.key);
  return found;
};

test("OPTIONS reports the supported extensions to anyone, also to pages of other origins", async () => {
  const answer = await app.call("OPTIONS", TUS, {
    headers: { origin: "https://studio.example", "access-control-request-method": "POST" },
  });
  expect([answer.status, Object.fromEntries(answer.headers)]).toMatchObject([
    204,
    {
      "tus-resumable": "1.0.0",
      "tus-version": "1.0.0",
      "tus-extension": "creation,creation-with-upload,expiration,termination,checksum",
      "tus-max-size": String(64 * 2 ** 30),
      "tus-checksum-algorithm": "sha1,sha256,md5",
      "access-control-allow-origin": "*",
      "access-control-allow-methods": expect.stringContaining("POST"),
      "access-control-allow-headers": expect.stringMatching(/X-API-Key.*Upload-Offset/),
    },
  ]);
  const one = await app.call("OPTIONS", `${TUS}/1`, { headers: { origin: "https://studio.example" } });
  expect([one.status, one.headers.get("access-control-allow-methods")]).toEqual([204, "HEAD, PATCH, DELETE, POST"]);
});

test("an upload is created, sent in pieces, resumed, and completes itself: one job, one event", async () => {
  const told = { filename: "ein Ausflug.mp4", filetype: "video/mp4", title: "Ausflug ü" };
  const upload = await created({ "upload-metadata": metadata(told) });
  expect(await upload.session()).toMatchObject({
    status: "pending",
    filename: "ein Ausflug.mp4",
    content_type: "video/mp4",
    bytes_expected: 10,
    bytes_received: 0,
  });
  expect(await upload.session()).not.toHaveProperty("upload_url");
  expect(offsetIn(await upload.head())).toEqual([200, "0"]);
  expect(offsetIn(await upload.patch(0, "abcd"))).toEqual([204, "4"]);
  const head = await upload.head();
  expect(Object.fromEntries(head.headers)).toMatchObject({
    "upload-offset": "4",
    "upload-length": "10",
    "tus-resumable": "1.0.0",
    "cache-control": "no-store",
    "x-svc-asset-id": String((await upload.session()).asset_id),
    "upload-expires": expect.stringMatching(/^\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT$/),
    "access-control-expose-headers": expect.stringMatching(/Upload-Offset.*X-SVC-Asset-Id/),
  });
  expect((await upload.session()).bytes_received).toBe(4);
  expect(await types()).toEqual([]);
  expect(offsetIn(await upload.patch(4, "efghij"))).toEqual([204, "10"]);
  expect(await types()).toEqual(["video.upload.completed", "video.job.queued"]);
  expect(offsetIn(await upload.head())).toEqual([200, "10"]);
  expect(offsetIn(await upload.patch(4, "efghij"))).toEqual([204, "10"]);
  expect(await upload.session()).toMatchObject({ status: "completed", bytes_received: 10 });
  const asset = await app.as(key).getAsset((await upload.session()).asset_id);
  expect(asset.body).toMatchObject({ title: "Ausflug ü", source_bytes: 10, playback_status: "processing" });
  expect(await types()).toEqual([]);
  expect(await underWay()).toEqual([]);
  const { body: contract } = await next(app);
  expect((await app.call("GET", contract.source.url)).text).toBe("abcdefghij");
  expect((await next(app)).status).toBe(204);
});

test("an upload may include its data in the creation, whole or in part", async () => {
  const whole = await create(BYTES, "abcdefghij");
  expect(offsetIn(whole)).toEqual([201, "10"]);
  const begun = await create(BYTES, "abc");
  expect(offsetIn(begun)).toEqual([201, "3"]);
  const at = begun.headers.get("location") as string;
  const rest = { key, raw: "defghij", headers: { ...BYTES, "upload-offset": "3" } };
  expect(offsetIn(await app.call("PATCH", at, rest))).toEqual([204, "10"]);
  expect(await types()).toEqual([
    "video.upload.completed",
    "video.job.queued",
    "video.upload.completed",
    "video.job.queued",
  ]);
});

describe("a PATCH", () => {
  test("with a wrong offset is 409, and one that is too long 413: nothing changes", async () => {
    const { patch, head } = await created();
    await patch(0, "abcd");
    for (const offset of [0, 3, 5, 10]) {
      const answer = await patch(offset, "x");
      expectError(answer, 409, "upload_conflict", String(offset));
      expect(answer.headers.get("upload-offset")).toBe("4");
    }
    expectError(await patch(4, "1234567"), 413, "payload_too_large");
    expectError(await patch(4, "x", { "content-type": "video/mp4" }), 415, "unsupported_media_type");
    expectError(await patch(-1, "x"), 422, "validation_failed");
    expect(offsetIn(await head())).toEqual([200, "4"]);
    expect(offsetIn(await patch(4, ""))).toEqual([204, "4"]);
  });

  test.each(["sha1", "sha256", "md5"])("with another checksum (%s) is 460 and removed again", async (algorithm) => {
    const { patch, head } = await created();
    const sum = (text: string) => ({
      "upload-checksum": `${algorithm} ${createHash(algorithm).update(text).digest("base64")}`,
    });
    expect(offsetIn(await patch(0, "abcd", sum("abcd")))).toEqual([204, "4"]);
    expectError(await patch(4, "eXgh", sum("efgh")), 460, "checksum_mismatch");
    expectError(await patch(4, "eXghij", sum("efghij")), 460, "checksum_mismatch", "the last one");
    expect(offsetIn(await head())).toEqual([200, "4"]);
    expectError(await patch(4, "e", { "upload-checksum": "crc32 AAAA" }), 422, "validation_failed");
    expect(offsetIn(await patch(4, "efghij", sum("efghij")))).toEqual([204, "10"]);
  });

  test("may be sent as POST where PATCH is not available", async () => {
    const { at } = await created();
    const post = (method: string, more = {}) =>
      app.call("POST", at, {
        key,
        ...more,
        headers: { ...BYTES, "upload-offset": "0", "x-http-method-override": method },
      });
    expect(offsetIn(await post("PATCH", { raw: "abc" }))).toEqual([204, "3"]);
    expectError(await post("PUT", { raw: "abc" }), 405, "method_not_allowed");
    expect((await post("DELETE")).status).toBe(204);
  });
});

test("a terminated upload is deleted, with one event, and is 410", async () => {
  const { at, patch, session } = await created();
  await patch(0, "abc");
  const end = () => app.call("DELETE", at, { key, headers: VERSION });
  expect((await end()).status).toBe(204);
  expect(await types()).toEqual(["video.upload.failed"]);
  expect([await underWay(), (await session()).status]).toEqual([[], "aborted"]);
  for (const answer of [await end(), await patch(3, "defghij")]) expectError(answer, 410, "upload_over");
  expect((await app.call("HEAD", at, { key, headers: VERSION })).status).toBe(410);
});

test("an upload that is not finished in time expires with its bytes", async () => {
  const { patch, head } = await created();
  await patch(0, "abc");
  app.advance(601_000);
  await app.runTask("expire-uploads");
  expect([(await head()).status, await underWay(), await types()]).toEqual([410, [], ["video.upload.failed"]]);
});

test("malformed creations are refused", async () => {
  const cases: [Record<string, string>, number, string][] = [
    [{ "tus-resumable": "0.2.2" }, 412, "tus_version_unsupported"],
    [{ "upload-length": "0" }, 422, "validation_failed"],
    [{ "upload-length": "-1" }, 422, "validation_failed"],
    [{ "upload-length": "many" }, 422, "validation_failed"],
    [{ "upload-length": String(2 ** 40) }, 413, "payload_too_large"],
    [{ "upload-metadata": "filename §§" }, 422, "validation_failed"],
    [{ "upload-metadata": metadata({ playback_policy: "open" }) }, 422, "validation_failed"],
    [{ "upload-metadata": metadata({ tenant_id: "99" }) }, 404, "not_found"],
  ];
  for (const [headers, status, code] of cases) {
    const encoded = Object.fromEntries(
      Object.entries(headers).map(([n, text]) => [n, Buffer.from(text).toString("latin1")]),
    );
    const answer = await create(encoded);
    expectError(answer, status, code, JSON.stringify(headers));
    expect(answer.headers.get("tus-resumable")).toBe("1.0.0");
  }
  expectError(await app.call("POST", TUS, { key, headers: VERSION }), 422, "parameter_missing");
  const stranger = await app.call("POST", TUS, { headers: { ...VERSION, "upload-length": "10" } });
  expectError(stranger, 401, "unauthorized");
  expect(stranger.headers.get("access-control-allow-origin")).toBe("*");
  expect((await app.as(key).listAssets()).body).toEqual([]);
  const put = await app.as(key).initiateUpload({ filename: "a", bytes_expected: 1 });
  expect((await app.call("HEAD", `${TUS}/${put.body.id}`, { key, headers: VERSION })).status).toBe(404);
});

import { beforeEach, describe, expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import { expectError } from "#test/support/error.ts";
import { next } from "#test/support/flow.ts";

let app: TestApp;
let key: string;
beforeEach(async () => {
  app = await testApp({ upload_ttl_seconds: 600 });
  key = await app.key((await app.tenant()).id);
});

async function initiated(bytes = 10) {
  const { body: upload } = await app.as(key).initiateUpload({ filename: "a.mp4", bytes_expected: bytes });
  /** The status, and the received range or the ETag. */
  const put = async (range: string, raw: string | ReadableStream = "") => {
    const answer = await app.call("PUT", upload.upload_url, { raw, headers: { "content-range": range } });
    return answer.status === 308 ? [308, answer.headers.get("range")] : [answer.status, answer.body?.code ?? ""];
  };
  const complete = (bytes_received = bytes) => app.as(key).completeUpload(upload.id, { bytes_received });
  return { upload, put, complete };
}
async function sourceText() {
  const { body: contract } = await next(app);
  return (await app.call("GET", contract.source.url)).text;
}
const underWay = async () => {
  const found: string[] = [];
  for await (const each of app.opened.app.objects?.listMultiparts("tenants/") ?? []) found.push(each.key);
  return found;
};

describe("sequential chunks with Content-Range to one URL", () => {
  test.each([
    [
      "as upchunk sends them",
      [
        ["0-3", "abcd", "0-3"],
        ["4-7", "efgh", "0-7"],
        ["8-9", "ij", "whole"],
      ],
    ],
    ["all in one", [["0-9", "abcdefghij", "whole"]]],
    [
      "one again, whose answer was lost",
      [
        ["0-3", "abcd", "0-3"],
        ["0-3", "abcd", "0-3"],
        ["4-9", "efghij", "whole"],
      ],
    ],
    [
      "overlapping",
      [
        ["0-5", "abcdef", "0-5"],
        ["2-9", "cdefghij", "whole"],
      ],
    ],
    [
      "an earlier one again does not take later bytes away",
      [
        ["0-5", "abcdef", "0-5"],
        ["0-1", "ab", "0-5"],
        ["6-9", "ghij", "whole"],
      ],
    ],
    [
      "out of order",
      [
        ["4-7", "efgh", null],
        ["0-3", "abcd", "0-3"],
        ["6-9", "ghij", "0-3"],
        ["4-9", "efghij", "whole"],
      ],
    ],
    [
      "asked for between",
      [
        ["*", "", null],
        ["0-3", "abcd", "0-3"],
        ["*", "", "0-3"],
        ["4-9", "efghij", "whole"],
        ["*", "", "whole"],
      ],
    ],
    [
      "the last one again",
      [
        ["0-3", "abcd", "0-3"],
        ["4-9", "efghij", "whole"],
        ["4-9", "efghij", "whole"],
      ],
    ],
    [
      "started again with another file",
      [
        ["0-5", "xxxxxx", "0-5"],
        ["0-3", "abcd", "0-5"],
        ["4-9", "efghij", "whole"],
      ],
    ],
  ] as [string, [string, string, string | null][]][])("%s", async (_, chunks) => {
    const { put, complete } = await initiated();
    for (const [range, bytes, held] of chunks) {
      const expected = held === "whole" ? [200, ""] : [308, held && `bytes=${held}`];
      expect(await put(`bytes ${range}/10`, bytes), range).toEqual(expected);
    }
    expect(await underWay()).toEqual([]);
    expect((await complete()).body).toMatchObject({ status: "completed", bytes_received: 10 });
    expect(await sourceText()).toBe("abcdefghij");
  });

  test("malformed chunks are refused, and nothing is lost", async () => {
    const { put, complete } = await initiated();
    expect(await put("bytes 0-3/10", "abcd")).toEqual([308, "bytes=0-3"]);
    for (const range of [
      "bytes 4-9",
      "bytes 4-9/*",
      "bytes 9-4/10",
      "bytes 4-10/10",
      "items 4-9/10",
      "bytes -5/10",
      "",
    ])
      expect(await put(range, "efghij"), range).toEqual([422, "validation_failed"]);
    const lengthy = await app.call("PUT", (await initiated()).upload.upload_url, {
      raw: "abcdef",
      headers: { "content-range": "bytes 0-3/10", "content-length": "6" },
    });
    expectError(lengthy, 422, "validation_failed");
    // A total other than `bytes_expected` means another file.
    const totals = ["bytes 4-6/11", "bytes 4-8/9", "bytes 0-3/4", "bytes 4-9/100", "bytes */11", "bytes */4"];
    for (const range of [...totals, "bytes 0-9/9", "bytes 4-9/5", "bytes 0-0/0"])
      expect(await put(range, range.includes("*") ? "" : "efghij".slice(0, 3)), range).toEqual([422, "bytes_mismatch"]);
    const stream = new Blob(["efghijk"]).stream();
    expect(await put("bytes 4-9/10", stream), "longer than it says").toEqual([413, "payload_too_large"]);
    expectError(await complete(), 422, "bytes_mismatch");
    const [status] = await put("bytes */10");
    expect(status).toBe(308);
    expect(await put("bytes 4-9/10", "efghij")).toEqual([200, ""]);
    expect((await complete()).status).toBe(200);
  });

  test("a whole body replaces chunks, and chunks replace a whole body", async () => {
    const { upload, put, complete } = await initiated();
    await put("bytes 0-3/10", "xxxx");
    expect((await app.call("PUT", upload.upload_url, { raw: "klmno" })).status).toBe(200);
    expect([await underWay(), await put("bytes */10")]).toEqual([[], [308, null]]);
    await put("bytes 0-3/10", "abcd");
    expect(await put("bytes 4-9/10", "efghij")).toEqual([200, ""]);
    expect((await complete()).status).toBe(200);
    expect(await put("bytes 0-3/10", "yyyy")).toEqual([409, "upload_conflict"]);
    expect(await sourceText()).toBe("abcdefghij");
  });

  test("chunks of a file of another size are refused with the received range, and nothing is lost", async () => {
    const { put, complete } = await initiated();
    expect(await put("bytes 0-4/5", "abcde")).toEqual([422, "bytes_mismatch"]);
    expect(await put("bytes 0-3/10", "abcd")).toEqual([308, "bytes=0-3"]);
    expect(await put("bytes 2-4/5", "cde")).toEqual([422, "bytes_mismatch"]);
    expectError(await complete(5), 422, "bytes_mismatch");
    expect(await put("bytes 4-9/10", "efghij")).toEqual([200, ""]);
    expect((await complete()).status).toBe(200);
    expect(await sourceText()).toBe("abcdefghij");
  });

  test("parts, batch uploads and tus also refuse another size than was announced", async () => {
    const body = { filename: "a.mp4", bytes_expected: 10 };
    const { body: multipart } = await app.as(key).initiateMultipartUpload(body);
    const { body: part } = await app.as(key).signUploadPart(multipart.id, { part_number: 1 });
    const putPart = (range: string, raw = "abcdefghij") =>
      app.call("PUT", part.url, {
        raw,
        headers: { ...part.headers, "content-range": range, "content-length": String(raw.length) },
      });
    expectError(await putPart("bytes 0-9/11"), 422, "bytes_mismatch");
    expectError(await putPart("bytes 0-4/5", "abcde"), 422, "bytes_mismatch");
    expectError(await putPart("bytes 0-9/9"), 422, "bytes_mismatch");
    expectError(await putPart("bytes 1-10/10"), 422, "validation_failed");
    expectError(await putPart("bytes 9-0/10"), 422, "validation_failed");
    expectError(await putPart("bytes 0-3/10"), 422, "validation_failed");
    expect((await app.as(key).getUpload(multipart.id)).body.parts).toEqual([]);
    expect((await putPart("bytes 0-9/10")).status).toBe(200);

    const { body: batch } = await app.as(key).createBatch({});
    const { body: batchUpload } = await app
      .as(key)
      .createBatchUpload(batch.id, { object_key: "a.m4s", bytes_expected: 10, content_type: "video/mp4" });
    const putIntent = (range: string, raw: string) =>
      app.call("PUT", batchUpload.upload_url, {
        raw,
        headers: { ...batchUpload.upload_headers, "content-range": range },
      });
    expectError(await putIntent("bytes 0-4/5", "abcde"), 422, "bytes_mismatch");
    expect((await putIntent("bytes 0-9/10", "abcdefghij")).status).toBe(200);

    const tus = { "tus-resumable": "1.0.0" };
    const deferred = { ...tus, "upload-defer-length": "1" };
    expectError(await app.call("POST", "/api/v1/uploads/tus", { key, headers: deferred }), 422, "validation_failed");
    const both = { ...deferred, "upload-length": "10" };
    expectError(await app.call("POST", "/api/v1/uploads/tus", { key, headers: both }), 422, "validation_failed");
    const made = await app.call("POST", "/api/v1/uploads/tus", { key, headers: { ...tus, "upload-length": "10" } });
    const patch = (length: string) =>
      app.call("PATCH", new URL(made.headers.get("location") as string).pathname, {
        key,
        raw: "abcdefghij",
        headers: {
          ...tus,
          "content-type": "application/offset+octet-stream",
          "upload-offset": "0",
          "upload-length": length,
        },
      });
    expectError(await patch("11"), 422, "bytes_mismatch");
    expectError(await patch("5"), 422, "bytes_mismatch");
    expect((await patch("10")).status).toBe(204);
  });

  test("are deleted when their session expires", async () => {
    const { upload, put } = await initiated();
    await put("bytes 0-3/10", "abcd");
    expect(await underWay()).toHaveLength(1);
    app.advance(601_000);
    await app.runTask("expire-uploads");
    expect(await underWay()).toEqual([]);
    expect(await put("bytes */10")).toEqual([403, "address_expired"]);
    expect(upload.status).toBe("pending");
  });
});

describe("a page of another origin", () => {
  const origin = { origin: "https://studio.example" };

  test("may send a preflight request without a credential", async () => {
    const { upload } = await initiated();
    const answer = await app.call("OPTIONS", upload.upload_url, {
      headers: {
        ...origin,
        "access-control-request-method": "PUT",
        "access-control-request-headers": "content-range,content-type",
      },
    });
    expect([answer.status, answer.text]).toEqual([204, ""]);
    expect(Object.fromEntries(answer.headers)).toMatchObject({
      "access-control-allow-origin": "*",
      "access-control-allow-methods": "PUT, GET, HEAD",
      "access-control-allow-headers": expect.stringMatching(/Content-Range.*\*/),
    });
  });

  test("may read responses, including errors", async () => {
    const { upload } = await initiated();
    const asked = [
      await app.call("PUT", upload.upload_url, { raw: "abc", headers: origin }),
      await app.call("PUT", upload.upload_url, { raw: "abc", headers: { ...origin, "content-range": "bytes 0-2/10" } }),
      await app.call("PUT", `${upload.upload_url}x`, { raw: "abc", headers: origin }),
      await app.call("GET", upload.upload_url, { headers: origin }),
    ];
    expect(asked.map(({ status }) => status)).toEqual([200, 308, 403, 403]);
    for (const { headers } of asked) {
      expect(headers.get("access-control-allow-origin")).toBe("*");
      expect(headers.get("access-control-expose-headers")).toMatch(/ETag.*Range/);
    }
  });

  test("is allowed nothing else", async () => {
    for (const path of ["/api/v1/assets", "/api/v1/uploads/initiate"]) {
      const answer = await app.call("OPTIONS", path, {
        headers: { ...origin, "access-control-request-method": "POST" },
      });
      expectError(answer, 405, "method_not_allowed", path);
      expect(answer.headers.get("access-control-allow-origin")).toBeNull();
    }
  });
});

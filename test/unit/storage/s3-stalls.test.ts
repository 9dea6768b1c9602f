import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { segmentCache } from "#platform/http/segment-cache.ts";
import { s3Store } from "#storage/objects/s3.ts";
import { readSmallObject } from "#storage/objects/small-objects.ts";
import { StorageUnavailable } from "#storage/objects/store.ts";
import { until } from "#test/support/descendants.ts";

/** A store of an S3 server that answers with `respond`. */
async function storeOf(respond: (response: ServerResponse, request: { method: string }) => void) {
  const server = createServer((request, response) => {
    request.resume();
    respond(response, request as { method: string });
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const credentials = { accessKeyId: "a", secretAccessKey: "b", region: "c" };
  const place = { endpoint: `http://127.0.0.1:${port}`, bucket: "videos", pathStyle: true, prefix: "" };
  return s3Store({ ...credentials, ...place, backoffMs: 1, stallMs: 50 });
}

const object = (bytes: number) => ({
  "content-length": bytes,
  "last-modified": new Date(0).toUTCString(),
  etag: '"e"',
});

const stalls = (status: number) => (response: ServerResponse) => {
  response.writeHead(status, { "content-type": "application/xml" });
  response.write("<ListBucketResult>");
};
const endless = (status: number) => (response: ServerResponse) => {
  response.writeHead(status, { "content-type": "application/xml" });
  const piece = "x".repeat(64 * 1024);
  const more = () => {
    while (!response.destroyed && response.write(piece));
  };
  response.on("drain", more);
  more();
};

test.each([
  ["a list that stalls", stalls(200), "list"],
  ["a list without an end", endless(200), "list"],
  ["a deletion whose answer stalls", stalls(200), "delete"],
  ["a refusal that stalls", stalls(404), "delete"],
  ["a refusal without an end", endless(404), "delete"],
  ["a refusal of a lookup without an end", endless(403), "read"],
] as const)("%s is an error", async (_what, respond, operation) => {
  const store = await storeOf(respond);
  const working =
    operation === "list" ? store.list("a/") : operation === "delete" ? store.delete("a/b") : store.get("a/b");
  await expect(working).rejects.toThrow(StorageUnavailable);
});

test("a list whose answer stalls once is requested again", async () => {
  let requests = 0;
  const store = await storeOf((response) => {
    if (++requests === 1) stalls(200)(response);
    else response.end("<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>");
  });
  expect(await store.list("a/")).toEqual({ objects: [], cursor: null });
  expect(requests).toBe(2);
});

test("a copy whose answer begins with spaces, as S3 sends them while it works, is awaited", async () => {
  const store = await storeOf((response, { method }) => {
    if (method === "HEAD") return void response.writeHead(200, object(10)).end();
    response.writeHead(200);
    let spaces = 0;
    const timer = setInterval(() => {
      response.write(" ");
      if (++spaces < 20) return;
      clearInterval(timer);
      response.end("<CopyObjectResult/>");
    }, 20);
  });
  expect(await store.copy("a/b", "a/c")).toMatchObject({ key: "a/c", bytes: 10 });
});

test("an object whose bytes stop fails, and the connection closes", async () => {
  let closed = 0;
  const store = await storeOf((response) => {
    response.on("close", () => closed++);
    response.writeHead(200, object(10)).write("12345");
  });
  await expect(readSmallObject(store, "a/b")).rejects.toThrow(StorageUnavailable);
  await until("the connection is closed", () => closed === 1 || null);
});

test("an object without a length is an error", async () => {
  const store = await storeOf((response) => response.writeHead(200).write("12345"));
  await expect(store.get("a/b")).rejects.toThrow("does not report the size");
});

test("an object whose reader pauses is not ended", async () => {
  const bytes = Buffer.alloc(8 * 2 ** 20, "v");
  const store = await storeOf((response) => response.writeHead(200, object(bytes.length)).end(bytes));
  const { body } = (await store.get("a/b")) ?? {};
  const reader = (body as AsyncIterable<Buffer>)[Symbol.asyncIterator]();
  let received = (await reader.next()).value.length;
  // Real time: the reader waits for longer than S3 may.
  await new Promise((resolve) => setTimeout(resolve, 300));
  for (let next = await reader.next(); !next.done; next = await reader.next()) received += next.value.length;
  expect(received).toBe(bytes.length);
});

test("a segment whose first load stalls is loaded by the next viewer, and its memory is free again", async () => {
  let requests = 0;
  const store = await storeOf((response) => {
    response.writeHead(200, object(10)).write("12345");
    if (++requests > 1) response.end("67890");
  });
  const info = { key: "a/b", bytes: 10, etag: '"e"', modifiedAt: new Date(0) };
  const cache = segmentCache(15);
  const both = [cache.load(store, info), cache.load(store, info)];
  await Promise.all(both.map((load) => expect(load).rejects.toThrow(StorageUnavailable)));
  expect(String(await cache.load(store, info))).toBe("1234567890");
  expect(requests).toBe(2);
});

test("a segment that arrives in single bytes is given up after a time", async () => {
  const store = await storeOf((response) => {
    response.writeHead(200, object(2 ** 20));
    const timer = setInterval(() => response.write("v"), 10);
    response.once("close", () => clearInterval(timer));
  });
  const info = { key: "a/b", bytes: 2 ** 20, etag: '"e"', modifiedAt: new Date(0) };
  await expect(segmentCache(2 ** 21, 300).load(store, info)).rejects.toThrow("did not arrive within 0.3 s");
});

import { afterAll, beforeAll, expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import { muxClient } from "#test/support/mux/client.ts";
import { newBucket, type S3Server, s3Server } from "#test/support/s3-server.ts";

let s3: S3Server;
let app: TestApp;
beforeAll(async () => {
  s3 = await s3Server();
  const bucket = newBucket("mux");
  await s3.bucket(bucket);
  app = await testApp({
    storage: "s3",
    s3_endpoint: s3.endpoint,
    s3_bucket: bucket,
    s3_region: s3.region,
    s3_access_key_id: s3.accessKeyId,
    s3_secret_access_key: s3.secretAccessKey,
  });
});
afterAll(() => app.close());

/** As upchunk sends them: multiples of 256 KiB. */
const CHUNK = 256 * 1024;

test("a direct upload takes a file in chunks, and each of them again", async () => {
  const key = await app.key((await app.tenant()).id);
  const mux = muxClient(app, key);
  const bytes = Buffer.alloc(3 * CHUNK + 1000, "0123456789");
  const made = await mux.video.uploads.create({ cors_origin: "*" });
  const send = async (from: number) => {
    const part = bytes.subarray(from, from + CHUNK);
    const headers = {
      "content-length": String(part.length),
      "content-range": `bytes ${from}-${from + part.length - 1}/${bytes.length}`,
    };
    const request = new Request(made.url as string, { method: "PUT", body: part as Uint8Array<ArrayBuffer>, headers });
    const response = await app.opened.server.fetch(request);
    return [response.status, response.headers.get("range")];
  };
  expect(await send(0)).toEqual([308, `bytes=0-${CHUNK - 1}`]);
  expect(await send(CHUNK)).toEqual([308, `bytes=0-${2 * CHUNK - 1}`]);
  // Its response was lost.
  expect(await send(CHUNK)).toEqual([308, `bytes=0-${2 * CHUNK - 1}`]);
  expect(await send(2 * CHUNK)).toEqual([308, `bytes=0-${3 * CHUNK - 1}`]);
  expect((await send(3 * CHUNK))[0]).toBe(200);
  expect((await send(3 * CHUNK))[0]).toBe(200);
  const done = await mux.video.uploads.retrieve(made.id);
  expect(done.status).toBe("asset_created");
  const { master } = await mux.video.assets.updateMasterAccess(done.asset_id as string, { master_access: "temporary" });
  const stored = Buffer.from(await (await fetch(master?.url as string)).arrayBuffer());
  expect(stored.equals(bytes)).toBe(true);
});

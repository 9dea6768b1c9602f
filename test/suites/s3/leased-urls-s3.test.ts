import { afterAll, beforeAll, expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import { callback, next, uploaded } from "#test/support/flow.ts";
import { newBucket, type S3Server, s3Server } from "#test/support/s3-server.ts";
import { nextTask } from "#test/support/tasks.ts";

const bucket = newBucket("leases");
let s3: S3Server;
let app: TestApp;
let key: string;
beforeAll(async () => {
  s3 = await s3Server();
  await s3.bucket(bucket);
  app = await testApp({
    storage: "s3",
    s3_endpoint: s3.endpoint,
    s3_bucket: bucket,
    s3_region: s3.region,
    s3_access_key_id: s3.accessKeyId,
    s3_secret_access_key: s3.secretAccessKey,
  });
  key = await app.key((await app.tenant()).id);
});
afterAll(async () => {
  await app?.close();
});

const HOUR = 3600;
const secondsOf = (url: string) => Number(new URL(url).searchParams.get("X-Amz-Expires"));
const objects = async () => (await app.opened.app.objects?.list("tenants/"))?.objects.map((one) => one.key) ?? [];

test.each(["job", "task"])(
  "on S3 the URLs of a %s are valid for an hour, and a heartbeat renews the source's",
  async (kind) => {
    const { asset } = await uploaded(app, key);
    const { body: contract } = await (kind === "job" ? next(app) : nextTask(app));
    expect(contract.job.asset_id).toBe(asset.id);
    const path = `${contract.outputs.prefix}a.m4s`;
    const sign = async (method: string) =>
      (
        await app.call("POST", contract.artifacts.sign_url, {
          worker: app.worker,
          lease: contract.lease.token,
          body: { paths: [path], method },
        })
      ).body[0].url;
    const put = await sign("PUT");
    for (const url of [contract.source.url, put, await sign("GET")]) {
      expect(secondsOf(url)).toBeGreaterThan(HOUR - 60);
      expect(secondsOf(url)).toBeLessThanOrEqual(HOUR);
    }
    const { body } = await callback(app, contract, "heartbeat", { progress: 1 });
    expect(secondsOf(body.source_url)).toBeLessThanOrEqual(HOUR);
    expect((await app.call("GET", body.source_url)).text).toBe("not really a video");

    // A kept URL stores an object after the end, which is deleted once the URL has expired.
    await app.as(key).deleteAsset(asset.id);
    expect(await objects()).toEqual([]);
    expect((await app.call("PUT", put, { raw: "late" })).status).toBe(200);
    await app.runTask("sweep-objects");
    app.advance(2 * HOUR * 1000 + 1000);
    await app.runTask("sweep-objects");
    expect(await objects()).toEqual([]);
  },
);

test("on S3 an object at the URL of an aborted upload is deleted once the URL has expired", async () => {
  const body = { filename: "a.mp4", bytes_expected: 4 };
  const { body: put } = await app.as(key).initiateUpload(body);
  const { body: parts } = await app.as(key).initiateMultipartUpload(body);
  const sign = { key, body: { part_number: 1 } };
  const { body: part } = await app.call("POST", `/api/v1/uploads/${parts.id}/sign_part`, sign);
  await app.as(key).abortMultipartUpload(parts.id, {});
  // Storage itself knows that the multipart upload has ended.
  expect((await app.call("PUT", part.url, { raw: "late" })).status).toBe(404);
  await app.as(key).deleteAsset(put.asset_id);
  const late = await app.call("PUT", put.upload_url, { raw: "late", headers: put.upload_headers });
  expect(late.status).toBe(200);
  app.advance(secondsOf(put.upload_url) * 1000 + HOUR * 1000 + 1000);
  await app.runTask("sweep-objects");
  expect(await objects()).toEqual([]);
});

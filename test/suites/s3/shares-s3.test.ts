import { afterAll, beforeAll, expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import { readyAsset } from "#test/support/flow.ts";
import { newBucket, type S3Server, s3Server } from "#test/support/s3-server.ts";
import { shareOf, viewer } from "#test/support/shares.ts";

let s3: S3Server;
const open: TestApp[] = [];
beforeAll(async () => {
  s3 = await s3Server();
});
afterAll(() => Promise.all(open.map((app) => app.close())));

test.each(["redirect", "rewrite"])(
  "%s: no URL of the bucket is given to viewers of a share, because it would outlive the share",
  async (s3_delivery) => {
    const bucket = newBucket("shares");
    await s3.bucket(bucket);
    const app = await testApp({
      storage: "s3",
      s3_delivery,
      s3_endpoint: s3.endpoint,
      s3_bucket: bucket,
      s3_region: s3.region,
      s3_access_key_id: s3.accessKeyId,
      s3_secret_access_key: s3.secretAccessKey,
    });
    open.push(app);
    const key = await app.key((await app.tenant()).id);
    const { asset } = await readyAsset(app, key);
    const made = await shareOf(app, key, asset.id, { allow_download: true });
    const one = viewer(app);
    await one.open(made.url);
    const master = (await one.media(asset)).text;
    const variant = `/media/${asset.external_id}/${/^[^#].*$/m.exec(master)?.[0]}`;
    const playlist = (await app.call("GET", variant)).text;
    expect(playlist).not.toContain(s3.endpoint);
    const segment = variant.replace(/[^/]*$/, /^[^#].*$/m.exec(playlist)?.[0] as string);
    const urls = [segment, `${made.url}/download?token=${one.token()}`];
    for (const url of urls) expect((await app.call("GET", url)).status, url).toBe(200);
    await app.as(key).deleteShare(asset.id, made.id);
    for (const url of urls) expect([403, 410], url).toContain((await app.call("GET", url)).status);
  },
);

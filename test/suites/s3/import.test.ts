import { join } from "node:path";
import { Readable } from "node:stream";
import { expect, test } from "vitest";
import { s3Store } from "#storage/objects/s3.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { CAPTION } from "#test/support/import/library.ts";
import { run, startServer, tenantKey } from "#test/support/process.ts";
import { newBucket, s3Server } from "#test/support/s3-server.ts";

test("a bucket is imported by signed requests, whatever its keys contain", { timeout: 180_000 }, async () => {
  const cwd = emptyFolder();
  const s3 = await s3Server();
  const bucket = newBucket("import");
  await s3.bucket(bucket);
  const store = s3Store({ ...s3, bucket, pathStyle: true, prefix: "" });
  const name = "v/a+b & ü/50 % 'x' (1)";
  await store.put(`${name}.mp4`, Readable.from([Buffer.alloc(3000, "x")]));
  await store.put(`${name}.de.vtt`, Readable.from([Buffer.from(CAPTION)]));
  await store.put("other/not-this.mp4", Readable.from([Buffer.from("y")]));
  const server = await startServer(join(cwd, "data"));
  const key = await tenantKey(server);
  const env = {
    VODBOX_SERVER: server.base,
    VODBOX_KEY: key,
    VODBOX_CACHE_DIR: join(cwd, "cache"),
    AWS_ENDPOINT_URL: s3.endpoint,
    AWS_REGION: s3.region,
    AWS_ACCESS_KEY_ID: s3.accessKeyId,
    AWS_SECRET_ACCESS_KEY: s3.secretAccessKey,
  };
  const { code, stderr } = await run(["import", "s3", `s3://${bucket}/v`, "--no-wait"], { env, cwd });
  expect(code, stderr).toBe(0);
  const { body } = await server.as(key).listAssets();
  expect(body).toMatchObject([
    { title: "50 % 'x' (1)", source_bytes: 3000, tags: { source_id: `${name.slice(2)}.mp4` } },
  ]);
  const subtitles = await server.as(key).listSubtitles(body[0].id);
  expect(subtitles.body).toMatchObject([{ language: "de" }]);
});

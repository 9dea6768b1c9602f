import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { beforeAll, expect, test } from "vitest";
import { testApp } from "#test/support/app.ts";
import { until } from "#test/support/descendants.ts";
import { expectError } from "#test/support/error.ts";
import { uploaded } from "#test/support/flow.ts";
import { emptyFolder, newFolder } from "#test/support/folder.ts";
import { fast, ffmpeg, picture } from "#test/support/media/sources.ts";
import { startServer } from "#test/support/process.ts";
import { type S3Server, s3Server } from "#test/support/s3-server.ts";
import { smallDisk } from "#test/support/storage/small-disk.ts";

const execute = promisify(execFile);
const bucket = "vodbox-neighbours";
let s3: S3Server;
beforeAll(async () => {
  s3 = await s3Server();
  await s3.bucket(bucket);
});

const settingsFor = (prefix: string) => ({
  storage: "s3",
  s3_endpoint: s3.endpoint,
  s3_bucket: bucket,
  s3_region: s3.region,
  s3_access_key_id: s3.accessKeyId,
  s3_secret_access_key: s3.secretAccessKey,
  s3_prefix: prefix,
});
const asEnvironment = (settings: Record<string, string>) =>
  Object.fromEntries(Object.entries(settings).map(([name, value]) => [`VODBOX_${name.toUpperCase()}`, value]));

test("the aws command line and vodbox read each other's objects, and a source uploaded by aws is transcoded", async (context) => {
  const aws = async (...args: string[]) => {
    const { stdout } = await execute("aws", ["--endpoint-url", s3.endpoint, ...args], {
      env: {
        PATH: process.env.PATH,
        HOME: emptyFolder(),
        AWS_ACCESS_KEY_ID: s3.accessKeyId,
        AWS_SECRET_ACCESS_KEY: s3.secretAccessKey,
        AWS_DEFAULT_REGION: s3.region,
        AWS_EC2_METADATA_DISABLED: "true",
        AWS_PAGER: "",
        // Newer versions append checksums that older servers do not support.
        AWS_REQUEST_CHECKSUM_CALCULATION: "when_required",
        AWS_RESPONSE_CHECKSUM_VALIDATION: "when_required",
      },
    });
    return stdout;
  };
  try {
    await execute("aws", ["--version"]);
  } catch (error) {
    console.warn(`skipped: there is no aws command line here (Debian: awscli): ${(error as Error).message}`);
    return context.skip();
  }
  const clip = join(emptyFolder(), "clip.mp4");
  await ffmpeg(...picture("160x90", "25", 1), ...fast, clip);
  const bytes = readFileSync(clip);
  const sum = createHash("sha256").update(bytes).digest("hex");
  const server = await startServer(emptyFolder(), {
    args: ["--workers", "1"],
    env: { ...asEnvironment(settingsFor("ours")), VODBOX_WEBHOOK_ALLOW_CIDRS: "127.0.0.1/32" },
  });
  const { as, admin } = server;
  const tenant = await as({ admin }).createTenant({ name: "T", slug: "t" });
  const scopes = ["assets:read", "assets:write"];
  const issued = await as({ admin }).createApiKey({ tenant_id: tenant.body.id, scopes });
  const key = issued.body.token as string;
  const isReady = (id: number) =>
    until("the asset is ready", async () => {
      const { body } = await as(key).getAsset(id);
      if (body.playback_status === "errored") throw new Error(JSON.stringify(body.error));
      return body.playback_status === "ready" ? body : null;
    });

  // aws reads what vodbox wrote.
  const { asset } = await uploaded(server, key, { bytes });
  const ready = await isReady(asset.id);
  const listed = JSON.parse(
    await aws("s3api", "list-objects-v2", "--bucket", bucket, "--prefix", "ours/tenants/", "--output", "json"),
  );
  const keys = listed.Contents.map((one: { Key: string }) => one.Key);
  expect(keys).toEqual(expect.arrayContaining([`ours/${ready.source_key}`, `ours/${ready.manifest_path}`]));
  const copy = join(emptyFolder(), "copy");
  await aws("s3api", "get-object", "--bucket", bucket, "--key", `ours/${ready.source_key}`, copy);
  expect(createHash("sha256").update(readFileSync(copy)).digest("hex")).toBe(sum);

  // vodbox accepts what aws wrote under the tenant's prefix.
  const sourceKey = `tenants/${tenant.body.id}/from-aws/clip one.mp4`;
  await aws("s3", "cp", "--no-progress", clip, `s3://${bucket}/ours/${sourceKey}`);
  const video_asset = {
    title: "By aws",
    input_status: "uploaded",
    playback_status: "processing",
    source_bytes: bytes.length,
    storage_bytes: bytes.length,
    duration_seconds: 0,
    source_key: sourceKey,
  };
  const created = await as(key).createAsset({ tenant_id: tenant.body.id, video_asset });
  expect(created.status, created.text).toBe(201);
  expect(await isReady(created.body.asset.id)).toMatchObject({ source_sha256: sum, height: 90 });

  // And the target of a URL presigned by aws.
  await aws("s3", "cp", "--no-progress", clip, `s3://${bucket}/theirs/clip.mp4`);
  const url = (await aws("s3", "presign", `s3://${bucket}/theirs/clip.mp4`, "--expires-in", "600")).trim();
  const fetched = await as(key).uploadFromUrl({ url });
  expect(fetched.status, fetched.text).toBe(201);
  expect(await isReady(fetched.body.asset_id)).toMatchObject({ source_sha256: sum, original_filename: "clip.mp4" });
});

/** A source that is uploaded by tus: data that do not fill a part are on the local disk. */
async function growing(app: Awaited<ReturnType<typeof testApp>>, key: string) {
  const made = await app.call("POST", "/api/v1/uploads/tus", {
    key,
    headers: { "tus-resumable": "1.0.0", "upload-length": "100" },
  });
  const path = new URL(made.headers.get("location") as string).pathname;
  const send = (offset: number, raw: string) =>
    app.call("PATCH", path, {
      key,
      raw,
      headers: {
        "tus-resumable": "1.0.0",
        "upload-offset": String(offset),
        "content-type": "application/offset+octet-stream",
      },
    });
  return { path, send };
}

test("appends in progress next to S3 are deleted with their upload: aborted, expired, or left by a crash", async () => {
  const dataDir = newFolder();
  const app = await testApp({ ...settingsFor("growing"), upload_ttl_seconds: 3600 }, dataDir);
  const key = await app.key((await app.tenant()).id);
  const folder = join(dataDir, "growing");
  const left = () => (existsSync(folder) ? readdirSync(folder).length : 0);

  const given = await growing(app, key);
  expect((await given.send(0, "some bytes")).status).toBe(204);
  expect(left()).toBe(1);
  const headers = { "tus-resumable": "1.0.0" };
  expect((await app.call("DELETE", given.path, { key, headers })).status).toBe(204);
  expect(left()).toBe(0);

  const late = await growing(app, key);
  expect((await late.send(0, "some bytes")).status).toBe(204);
  await app.runTask("sweep-appends");
  expect(left()).toBe(1);
  app.advance(3_601_000);
  await app.runTask("expire-uploads");
  expect(left()).toBe(0);

  // Its row is gone, so its owner is unknown.
  const appends = app.opened.app.objects?.appends ?? expect.fail("S3 cannot append");
  const { Readable } = await import("node:stream");
  await appends.append("tenants/1/sources/nobodys.mp4", Readable.from("abc"), { offset: 0, maxBytes: 3 });
  expect(left()).toBe(1);
  await app.runTask("sweep-appends");
  expect(left()).toBe(0);
});

test("appends next to S3 leave the free space that the database needs", async (context) => {
  const disk = smallDisk(context, 24);
  const app = await testApp({ ...settingsFor("space"), min_free_bytes: 8_000_000 }, join(disk.path, "data"));
  const key = await app.key((await app.tenant()).id);
  const { send } = await growing(app, key);
  expect((await send(0, "some bytes")).status).toBe(204);
  disk.fill();
  expectError(await send(10, "more bytes"), 507, "storage_full");
});

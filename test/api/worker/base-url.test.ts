import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { startWorker } from "#test/support/crash/encoding.ts";
import { until } from "#test/support/descendants.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { fast, ffmpeg, picture } from "#test/support/media/sources.ts";
import { lineOf, startServer } from "#test/support/process.ts";
import { typedClient } from "#test/support/typed-client.ts";

test("a worker uses the given URL of its server, whatever its public base URL", async () => {
  const clip = join(emptyFolder(), "clip.mp4");
  await ffmpeg(...picture("160x90", "25", 1), ...fast, clip);
  const server = await startServer(emptyFolder(), { env: { VODBOX_BASE_URL: "http://video.invalid/vod" } });
  expect(server.base).toBe("http://video.invalid/vod");
  const socket = (await lineOf(server, /^listening on (\S+)$/m))[1] as string;
  const here = (address: string) => address.replace(server.base, socket);
  const call: typeof server.call = (method, path, options) =>
    server.call(method, path.startsWith("/") ? socket + path : here(path), options);

  const tenant = await typedClient(call)({ admin: server.admin }).createTenant({ name: "T", slug: "t" });
  const issued = await typedClient(call)({ admin: server.admin }).createApiKey({
    tenant_id: tenant.body.id,
    scopes: ["assets:write"],
  });
  const key = issued.body.token;
  const bytes = readFileSync(clip);
  const upload = await typedClient(call)(key).initiateUpload({ filename: "clip.mp4", bytes_expected: bytes.length });
  expect(upload.body.upload_url).toMatch(/^http:\/\/video\.invalid\/vod\/objects\//);
  expect((await call("PUT", upload.body.upload_url, { raw: bytes })).status).toBe(200);
  await typedClient(call)(key).completeUpload(upload.body.id, { bytes_received: bytes.length });

  // A worker that shares no disk: source and artifacts are transferred in the same way.
  startWorker({ ...server, base: socket }, emptyFolder());
  const asset = await until("the asset is ready", async () => {
    const { body } = await typedClient(call)(key).getAsset(upload.body.asset_id);
    return body.playback_status === "ready" ? body : null;
  });
  expect(asset.height).toBe(90);
});

import { execFile, execFileSync } from "node:child_process";
import { mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { readDocument, WRITTEN_ADDRESS } from "#test/support/docs/document.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { PAYLOADS } from "#test/support/gateway.ts";
import { EXECUTABLE, startServer } from "#test/support/process.ts";

const LIVE_TOKEN = "gateway-token-of-the-tests";
const fragment = () => /^```yaml\n([\s\S]*?)^```$/m.exec(readDocument("docs/live.md"))?.[1] ?? "";
/** The value of a key of the fragment, as MediaMTX reads it. */
const setting = (key: string) => new RegExp(`^\\s*${key}: (.+)$`, "m").exec(fragment())?.[1] ?? "";

test("MediaMTX as configured in docs/live.md is authorized, and its recordings become assets", async () => {
  const folder = emptyFolder();
  const server = await startServer(folder, { env: { VODBOX_LIVE_TOKEN: LIVE_TOKEN, VODBOX_MIN_FREE_BYTES: "0" } });
  const { admin, as, call } = server;
  const tenant = (await as({ admin }).createTenant({ name: "A", slug: "a" })).body;
  const scopes = ["assets:read", "assets:write"];
  const key = (await as({ admin }).createApiKey({ tenant_id: tenant.id, scopes })).body.token;
  const { stream_key, path } = (await as(key).createChannel({ channel: "stage" })).body;

  expect(setting("authMethod")).toBe("http");
  const asked = setting("authHTTPAddress")
    .replace(WRITTEN_ADDRESS, new URL(server.base).host)
    .replace("TOKEN", LIVE_TOKEN);
  for (const [version, fields] of PAYLOADS) {
    const publish = { ...fields, action: "publish", path, password: stream_key };
    expect.soft((await call("POST", asked, { body: publish })).status, version).toBe(204);
    expect.soft((await call("POST", asked, { body: { ...publish, password: "x" } })).status, version).toBe(403);
  }

  const programs = join(folder, "programs");
  mkdirSync(programs);
  symlinkSync(EXECUTABLE, join(programs, "vodbox"));
  const recorded = join(folder, "2026-11-21_08-00-00-000000.mp4");
  const picture = ["-f", "lavfi", "-i", "testsrc2=size=320x180:rate=25:duration=1", "-c:v", "libx264"];
  const fragmented = ["-preset", "ultrafast", "-movflags", "frag_keyframe+empty_moov+default_base_moof"];
  execFileSync("ffmpeg", ["-v", "error", ...picture, ...fragmented, recorded]);
  const env = {
    PATH: `${programs}:${process.env.PATH}`,
    HOME: folder,
    VODBOX_SERVER: server.base,
    VODBOX_KEY: key,
    MTX_PATH: path,
    MTX_SEGMENT_PATH: recorded,
    MTX_SEGMENT_DURATION: "1",
  };
  await promisify(execFile)("sh", ["-c", setting("runOnRecordSegmentComplete")], { env });
  const [asset] = (await as(key).listAssets()).body;
  expect(asset).toMatchObject({
    original_filename: "2026-11-21_08-00-00-000000.mp4",
    input_status: "uploaded",
    tags: { source: "live", channel: path },
  });
});

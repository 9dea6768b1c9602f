import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { uploaded } from "../flow.ts";
import { newFolder, removeFolder } from "../folder.ts";
import { ffmpeg } from "../media/sources.ts";
import { type RunningServer, startServer } from "../process.ts";
import { typedClient } from "../typed-client.ts";

/** Known to the tests, so that they can issue their own tokens. */
export const SIGNING_SECRET = "signing-secret-of-the-browser-tests";

export type Platform = RunningServer & { key: string; clip: Buffer; close(): Promise<void> };

/** A real server with its own worker, a tenant, a key, and a clip of eight seconds with audio. */
export async function startPlatform(env: Record<string, string> = {}): Promise<Platform> {
  const folder = newFolder();
  const server = await startServer(join(folder, "data"), {
    args: ["--workers", "1"],
    env: { VODBOX_SIGNING_SECRET: SIGNING_SECRET, ...env },
  });
  const { admin } = server;
  const tenant = await server.as({ admin }).createTenant({ name: "Browser", slug: "web" });
  const scopes = ["assets:read", "assets:write", "playback:read"];
  const key = await server.as({ admin }).createApiKey({ tenant_id: tenant.body.id, scopes });
  return {
    ...server,
    key: key.body.token,
    clip: await makeClip(join(folder, "clip.mp4")),
    async close() {
      server.child.kill("SIGTERM");
      await server.ended;
      removeFolder(folder);
    },
  };
}

async function makeClip(path: string): Promise<Buffer> {
  const picture = ["-f", "lavfi", "-i", "testsrc2=size=640x360:rate=20:duration=8"];
  const sound = ["-f", "lavfi", "-i", "sine=frequency=440:sample_rate=48000:duration=8"];
  const encoders = ["-c:v", "libx264", "-preset", "veryfast", "-pix_fmt", "yuv420p", "-c:a", "aac"];
  await ffmpeg(...picture, ...sound, ...encoders, path);
  return readFileSync(path);
}

/** Polls like a client until the asset is ready; throws when it cannot become ready. */
export async function untilReady({ call, key }: Platform, id: number): Promise<void> {
  for (;;) {
    const { body } = await typedClient(call)(key).getAsset(id);
    if (body.playback_status === "ready") return;
    if (body.playback_status === "errored") throw new Error(JSON.stringify(body.error));
    await sleep(100);
  }
}

/** Uploads the clip with these fields of `initiate`; resolves with the id of its asset. */
export const uploadClip = async (platform: Platform, fields: Record<string, unknown>): Promise<number> =>
  (await uploaded(platform, platform.key, { bytes: platform.clip, ...fields })).asset.id;

import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startWorker, uploadClip } from "#test/support/crash/encoding.ts";
import { until } from "#test/support/descendants.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { binaries, fast, ffmpeg, picture, sound, temporaryFolder } from "#test/support/media/sources.ts";
import { run, startServer } from "#test/support/process.ts";

/** The first stage of ffmpeg that a development build has cannot encode AV1 (scripts/ffmpeg/components.ts). */

const folder = temporaryFolder("vodbox-test-lacking-encoder");
const clip = join(folder, "clip.mp4");
const lacking = join(folder, "ffmpeg");
beforeAll(async () => {
  await ffmpeg(...picture("320x180", "25", 2), ...sound(2), ...fast, "-pix_fmt", "yuv420p", "-c:a", "aac", clip);
  const without = `case " $* " in *" -encoders "*) ${binaries.ffmpeg} "$@" | grep -v libsvtav1;; *) exec ${binaries.ffmpeg} "$@";; esac`;
  writeFileSync(lacking, `#!/bin/sh\n${without}\n`, { mode: 0o755 });
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test("a job that needs AV1 fails with that reason, doctor reports it, and a worker that can completes it", async () => {
  const dataDir = emptyFolder();
  const env = { VODBOX_FFMPEG: lacking };
  const server = await startServer(dataDir, { args: ["--workers", "0"], env });
  const { code, stdout } = await run(["admin", "doctor", "--json", "--data", dataDir], {
    env: { ...env, VODBOX_ADMIN_TOKEN: server.admin },
  });
  const { findings } = JSON.parse(stdout) as { findings: { check: string; detail: string; ok: boolean }[] };
  const found = findings.find(({ check }) => check === "ffmpeg");
  expect(code).toBe(0);
  expect(found).toMatchObject({ ok: true, detail: expect.stringMatching(/cannot encode av1, for lack of libsvtav1/) });

  const profile = { name: "modern", codecs: ["h264", "av1"], ladder: [{ height: 120, max_bitrate: 300_000 }] };
  const created = await server.as({ admin: server.admin }).createEncodingProfile(profile);
  expect(created.status, created.text).toBe(201);
  const cannot = startWorker(server, emptyFolder(), { env });
  const made = await uploadClip(server, clip, "t", { encoding_profile: "modern" });
  const job = async () => (await server.as({ admin: server.admin }).getJob(made.job.id)).body;
  await until("the job has failed", async () => (await job()).status === "failed", 120_000);
  expect((await job()).error).toMatchObject({
    code: "encode_failed",
    message: expect.stringMatching(/requires av1, but the worker's ffmpeg has no encoder libsvtav1/),
  });
  cannot.child.kill("SIGTERM");
  await cannot.ended;

  startWorker(server, emptyFolder(), { env: { VODBOX_FFMPEG: binaries.ffmpeg } });
  const retried = await server.as({ admin: server.admin }).retryJob(made.job.id);
  expect(retried.status, retried.text).toBeLessThan(300);
  await until("the job is complete", async () => (await job()).status === "completed", 120_000);
  const { body: asset } = await server.as(made.key).getAsset(made.asset.id);
  expect(asset.renditions.map(({ name }: { name: string }) => name)).toContain("120p-av1");
});

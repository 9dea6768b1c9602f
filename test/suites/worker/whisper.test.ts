import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { until } from "#test/support/descendants.ts";
import type { Finding } from "#test/support/doctor.ts";
import { uploaded } from "#test/support/flow.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { fast, ffmpeg, picture, sound } from "#test/support/media/sources.ts";
import { run, startServer, tenantKey, vodbox } from "#test/support/process.ts";
import { testModel } from "#test/support/whisper/model.ts";

test("a model that is installed while the server runs makes captions on a worker that shares no disk", async () => {
  const folder = emptyFolder();
  const [clip, file, scratch] = ["clip.mp4", "model.bin", "scratch"].map((name) => join(folder, name)) as [
    ...[string, string, string],
  ];
  await ffmpeg(...picture("64x36", "5", 4), ...sound(4), ...fast, clip);
  writeFileSync(file, testModel());
  const env = { VODBOX_TRANSCRIBE: "whisper", VODBOX_MIN_FREE_BYTES: "0" };
  const server = await startServer(join(folder, "data"), { env });
  const { as, dataDir, worker } = server;
  const cli = async (...args: string[]) => {
    const own = { ...env, VODBOX_ADMIN_TOKEN: server.admin };
    const { code, stdout } = await run([...args, "--json", "--data", dataDir], { env: own });
    return { code, result: JSON.parse(stdout) };
  };

  const doctor = await cli("admin", "doctor");
  expect(doctor.code).toBe(1);
  const { detail } = doctor.result.findings.find(({ check }: Finding) => check === "transcription");
  expect(detail).toContain("vodbox captions install small");

  const installed = await cli("captions", "install", "spoken", "--file", file);
  expect(installed).toMatchObject({ code: 0, result: { name: "spoken", installed: true } });
  const models = (await cli("captions", "models")).result;
  expect(models.filter((model: { installed: boolean }) => model.installed)).toEqual([installed.result]);

  const key = await tenantKey(server);
  const { asset } = await uploaded(server, key, { bytes: readFileSync(clip), captions: ["de"] });
  vodbox(["worker", "--server", server.base, "--scratch", scratch], { env: { ...env, VODBOX_WORKER_TOKEN: worker } });
  const isReady = async () => (await as(key).getAsset(asset.id)).body.playback_status === "ready";
  await until("the asset is ready", isReady, 120_000);
  const [track] = (await as(key).listSubtitles(asset.id, { include: "content" })).body;
  expect(track).toMatchObject({ language: "de", source: "auto" });
  expect(track.content).toContain("Hello quiet world.");
  expect(readdirSync(join(scratch, "whisper"))).toEqual([`${installed.result.sha256}.bin`]);
});

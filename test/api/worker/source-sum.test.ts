import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { testApp } from "#test/support/app.ts";
import { startWorker } from "#test/support/crash/encoding.ts";
import { until } from "#test/support/descendants.ts";
import { expectError } from "#test/support/error.ts";
import { callback, next, putArtifacts, uploaded } from "#test/support/flow.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { fast, ffmpeg, picture } from "#test/support/media/sources.ts";
import { startServer, tenantKey } from "#test/support/process.ts";

const sum = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");
const OTHER = "0".repeat(64);

test("a worker reports the hash that it read, on the same disk or remotely, and a damaged source is reported as such", async () => {
  const clip = join(emptyFolder(), "clip.mp4");
  await ffmpeg(...picture("160x90", "25", 1), ...fast, clip);
  const bytes = readFileSync(clip);
  for (const sharesDisk of [true, false]) {
    const server = await startServer(emptyFolder(), { args: ["--workers", sharesDisk ? "1" : "0"] });
    if (!sharesDisk) startWorker(server, emptyFolder());
    const { as } = server;
    const key = await tenantKey(server, ["assets:read", "assets:write"]);
    const made = {
      untold: await uploaded(server, key, { bytes }),
      told: await uploaded(server, key, { bytes, sha256: sum(bytes).toUpperCase() }),
      damaged: await uploaded(server, key, { bytes, sha256: OTHER }),
      torn: await uploaded(server, key, { bytes: bytes.subarray(0, 500), sha256: sum(bytes) }),
      noVideo: await uploaded(server, key, { bytes: "no video" }),
    };
    const ended = async (id: number) =>
      until("the job has ended", async () => {
        const { body } = await as(key).getAsset(id);
        return ["ready", "errored"].includes(body.playback_status) ? body : null;
      });
    for (const one of [made.untold, made.told])
      expect(await ended(one.asset.id)).toMatchObject({ playback_status: "ready", source_sha256: sum(bytes) });
    for (const one of [made.damaged, made.torn])
      expect(await ended(one.asset.id)).toMatchObject({ error: { code: "source_corrupt" } });
    expect(await ended(made.noVideo.asset.id)).toMatchObject({ error: { code: "input_invalid" } });
    const job = await as(key).getJob(made.damaged.job.id);
    expect(job.body).toMatchObject({
      status: "failed",
      attempt: 1,
      error: { message: expect.stringContaining(OTHER) },
    });
    const found = await as(key).listDuplicates({ sha256: sum(bytes) });
    expect(found.body.duplicates.map((one: { asset_id: number }) => one.asset_id)).toEqual(
      [made.torn, made.told, made.untold].map(({ asset }) => asset.id),
    );
    server.child.kill("SIGTERM");
    await server.ended;
  }
});

test("the server itself fails a job whose worker reports another hash than was announced", async () => {
  const app = await testApp();
  const { id } = await app.tenant();
  const key = await app.key(id);
  const complete = async (announced: string | undefined, source_sha256?: unknown) => {
    const made = await uploaded(app, key, announced ? { sha256: announced } : {});
    const { body: contract } = await next(app);
    expect(contract.source.sha256).toBe(announced ?? null);
    const paths = await putArtifacts(app, contract);
    await app.newEvents();
    const answer = await callback(app, contract, "complete", { ...paths, media: { source_sha256 } });
    const asset = await app.as(key).getAsset(made.asset.id);
    const events = (await app.newEvents()).map(({ type }) => type);
    return { answer, asset: asset.body, events, contract, paths };
  };
  const A = "a".repeat(64);
  const bad = await complete(A, OTHER);
  expectError(bad.answer, 422, "source_corrupt");
  expect(bad.asset).toMatchObject({ playback_status: "errored", error: { code: "source_corrupt" }, source_sha256: A });
  expect(bad.events).toEqual(["video.job.failed", "video.asset.errored"]);
  const media = { source_sha256: OTHER };
  expectError(await callback(app, bad.contract, "complete", { ...bad.paths, media }), 409, "stale_lease");

  for (const [announced, told, kept] of [
    [A, A.toUpperCase(), A],
    [A, undefined, A],
    [A, null, A],
    [undefined, OTHER, OTHER],
    [undefined, undefined, null],
  ] as const) {
    const { answer, asset } = await complete(announced, told);
    expect(answer.status).toBe(200);
    expect(asset).toMatchObject({ playback_status: "ready", source_sha256: kept });
  }
  expectError((await complete(undefined, "no sum")).answer, 422, "validation_failed");
});

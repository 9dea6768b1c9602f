import { createPrivateKey } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { SignJWT } from "jose";
import { expect, test } from "vitest";
import { firstStart, json } from "#test/support/commands/outcome.ts";
import { uploadClip } from "#test/support/crash/encoding.ts";
import { until } from "#test/support/descendants.ts";
import { callback, next, putArtifacts, uploaded } from "#test/support/flow.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { fast, ffmpeg, picture } from "#test/support/media/sources.ts";
import { startServer } from "#test/support/process.ts";

test("no log and no table of the database contains a secret after a video's whole lifecycle", async () => {
  const dataDir = emptyFolder();
  const clip = join(emptyFolder(), "clip.mp4");
  await ffmpeg(...picture("160x90", "25", 1), ...fast, clip);
  await firstStart(dataDir);
  const tokens = await json(["admin", "token", "show", "--data", dataDir]);
  const env = { VODBOX_ADMIN_TOKEN: "", VODBOX_WORKER_TOKEN: "", VODBOX_LOG_LEVEL: "trace" };
  let server = { ...(await startServer(dataDir, { args: ["--workers", "1"], env })), ...tokens };
  let output = "";
  const stop = async () => {
    server.child.kill("SIGTERM");
    const { code, stdout, stderr } = await server.ended;
    expect([code, stderr.includes('"level":"info"')]).toEqual([0, true]);
    output += stdout + stderr;
  };
  const secrets: string[] = [...Object.values<string>(tokens)];
  for (const name of readdirSync(join(dataDir, "secrets")))
    secrets.push(readFileSync(join(dataDir, "secrets", name), "utf8").trim());
  secrets.push(readFileSync(join(dataDir, "local-proof"), "utf8").trim());
  const signature = (url: string) => secrets.push(new URL(url).searchParams.get("sig") as string);

  // A real worker encodes the video, and it is played.
  const made = await uploadClip(server, clip);
  const { key } = made;
  secrets.push(key);
  const playback = await until("playback", async () => {
    const answer = await server.as(key).getPlayback(made.asset.id);
    return answer.status === 200 ? answer.body : null;
  });
  secrets.push(playback.token);
  const master = await server.call("GET", playback.hls_url);
  expect(master.status).toBe(200);
  const [variant] = master.text.split("\n").filter((line: string) => line.endsWith(".m3u8"));
  expect((await server.call("GET", new URL(variant as string, playback.hls_url).href)).status).toBe(200);
  expect((await server.call("GET", playback.embed_url)).status).toBe(200);
  expect((await server.call("GET", `/media/${made.asset.id}/master.m3u8?token=${playback.token}x`)).status).toBe(403);

  await stop();

  // A second one by hand, so that the lease token and the signed URLs are known here; with refusals on the way.
  server = { ...(await startServer(dataDir, { env })), ...tokens };
  const initiated = await server
    .as({ key, headers: { "idempotency-key": "again" } })
    .initiateUpload({ filename: "a.mp4", bytes_expected: 3 });
  signature(initiated.body.upload_url);
  expect((await server.call("PUT", `${initiated.body.upload_url}0`, { raw: "abc" })).status).toBe(403);
  await server.as({ key, headers: { "content-type": "application/json" } }).createApiKey(`{"token":"${key}`);
  expect((await server.as(`${key}x`).listAssets()).status).toBe(401);
  // A signing key's private key, generated here or submitted by mistake; and a token that it signed.
  const pair = { tenant_id: made.asset.tenant_id, algorithm: "EdDSA" };
  const signing = { admin: tokens.admin, headers: { "idempotency-key": "pair" } };
  const signer = (await server.as({ ...signing }).createSigningKey(pair)).body;
  const privateKey = Buffer.from(signer.private_key, "base64").toString();
  secrets.push(signer.private_key, privateKey.split("\n")[1] as string);
  for (const public_key of [privateKey, signer.private_key]) {
    const mistaken = { admin: tokens.admin, body: { ...pair, public_key } };
    expect((await server.call("POST", "/api/v1/signing_keys", mistaken)).status).toBe(422);
  }
  const minted = await new SignJWT({ sub: made.asset.external_id, aud: "v" })
    .setProtectedHeader({ alg: "EdDSA", kid: signer.key_id })
    .setExpirationTime("1h")
    .sign(createPrivateKey(privateKey));
  secrets.push(minted);
  expect((await server.call("GET", `/media/${made.asset.id}/master.m3u8?token=${minted}`)).status).toBe(200);
  await uploaded(server, key, { bytes: "no video" });
  const { body: contract } = await next(server);
  secrets.push(contract.lease.token);
  signature(contract.source.url);
  const paths = await putArtifacts(server, contract);
  expect((await callback(server, contract, "complete", { ...paths, thumbnail_path: "x" })).status).toBe(422);
  expect((await callback(server, contract, "complete", paths)).status).toBe(200);
  await stop();

  const files = ["vodbox.db", "vodbox.db-wal"].map((name) => join(dataDir, name));
  const database = Buffer.concat(
    files
      .filter((path) => readdirSync(dataDir).includes(path.split("/").at(-1) as string))
      .map((path) => readFileSync(path)),
  );
  expect(database.includes("tenants/1/sources/")).toBe(true);
  // Including the audit log.
  expect(database.includes("/api/v1/signing_keys")).toBe(true);
  expect(new Set(secrets).size).toBeGreaterThanOrEqual(9);
  for (const [index, secret] of [...new Set(secrets)].entries()) {
    expect(secret.length, `secret ${index}`).toBeGreaterThan(20);
    expect.soft(output.includes(secret), `secret ${index} in the logs`).toBe(false);
    expect.soft(database.includes(secret), `secret ${index} in the database`).toBe(false);
  }
});

import { generateKeyPairSync } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import { importClient, installedClients } from "#test/support/clients.ts";
import { readyAsset } from "#test/support/flow.ts";
import { removeFolder } from "#test/support/folder.ts";

let folder: string;
let library: any;
let app: TestApp;
let key: string;
let asset: any;

beforeAll(async () => {
  [folder, app] = await Promise.all([installedClients("client"), testApp()]);
  library = await importClient(folder);
  key = await app.key((await app.tenant()).id);
  ({ asset } = await readyAsset(app, key));
});
afterAll(async () => {
  await app?.close();
  removeFolder(folder);
});

const statusOf = async (file: string, token: string) =>
  (await app.call("GET", `/media/${asset.external_id}/${file}?token=${token}`)).status;

test.each(["RS256", "EdDSA"])("a token signed with %s plays, and an expired one does not", async (algorithm) => {
  const made = await app.as(key).createSigningKey({ algorithm });
  const signer = { keyId: made.body.key_id, privateKey: made.body.private_key };
  for (const id of [asset.external_id, asset.id]) {
    const token = await library.signPlaybackToken({ ...signer, asset: id, expiresInSeconds: 60 });
    expect(await statusOf("master.m3u8", token)).toBe(200);
  }
  const pem = Buffer.from(signer.privateKey, "base64").toString();
  const token = await library.signPlaybackToken({ ...signer, privateKey: pem, asset: asset.id, expiresInSeconds: 60 });
  expect(await statusOf("master.m3u8", token)).toBe(200);
  app.advance(66_000);
  expect(await statusOf("master.m3u8", token)).toBe(403);
  app.advance(-66_000);
  const image = await library.signPlaybackToken({ ...signer, asset: asset.id, type: "thumbnail" });
  expect(await statusOf("master.m3u8", image)).toBe(403);
  const other = await library.signPlaybackToken({ ...signer, asset: "vid_other" });
  expect(await statusOf("master.m3u8", other)).toBe(403);
});

test("a private key of another form is refused with what to do", async () => {
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const options = { keyId: "sk_1", asset: 1 };
  const old = String(privateKey.export({ type: "pkcs1", format: "pem" }));
  await expect(library.signPlaybackToken({ ...options, privateKey: old })).rejects.toThrow(/openssl pkcs8 -topk8/);
  await expect(library.signPlaybackToken({ ...options, privateKey: "bm8=" })).rejects.toThrow(/PKCS#8 PEM/);
  const pem = String(privateKey.export({ type: "pkcs8", format: "pem" }));
  for (const expiresInSeconds of [0, -1, Number.NaN])
    await expect(library.signPlaybackToken({ ...options, privateKey: pem, expiresInSeconds })).rejects.toThrow(
      RangeError,
    );
});

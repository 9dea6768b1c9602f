import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { beforeAll, expect, test } from "vitest";
import { testApp } from "#test/support/app.ts";
import { checkup } from "#test/support/doctor.ts";
import { readyAsset } from "#test/support/flow.ts";
import { atEnd } from "#test/support/folder.ts";
import { type S3Server, s3Server } from "#test/support/s3-server.ts";
import { BUCKET, s3At, s3Settings } from "./setup.ts";

let s3: S3Server;
beforeAll(async () => {
  s3 = await s3Server();
  await s3.bucket(BUCKET);
});

test("in a shared bucket unreferenced objects are removed, and foreign ones are not touched", async () => {
  const neighbour = s3At(s3, "neighbour");
  const theirs = `tenants/1/sources/${"n".repeat(24)}.mp4`;
  await neighbour.put(theirs, Buffer.from("theirs"));
  const app = await testApp({ storage: "s3", ...s3Settings(s3, "doctor") });
  const tenant = await app.tenant();
  const key = await app.key(tenant.id);
  const { asset, contract } = await readyAsset(app, key);
  const own = s3At(s3, "doctor");
  const lost = `tenants/${tenant.id}/sources/${"o".repeat(24)}.mp4`;
  // More than one page of S3.
  const many = Array.from({ length: 1100 }, (_, i) => `tenants/${tenant.id}/delivered/${"m".repeat(24)}/${i}.m4s`);
  for (let i = 0; i < many.length; i += 50)
    await Promise.all(many.slice(i, i + 50).map((one) => own.put(one, Buffer.from("1"))));
  for (const one of [lost, "notes/mine.txt"]) await own.put(one, Buffer.from("12345"));
  await own.delete(contract.outputs.thumbnail_path);

  const young = await checkup(app);
  expect(young.of("clock").detail).toMatch(/it is \d s (behind|ahead of) the clock of S3/);
  expect(young.of("unreferenced").detail).toContain("1101 younger than 24 hours were skipped; 1 unknown");
  expect(young.of("missing").detail).toContain(`asset ${asset.id}: ${contract.outputs.thumbnail_path} (thumbnail)`);

  app.advance(25 * 3_600_000);
  const refused = await checkup(app, { fix: true });
  expect(refused.of("unreferenced")).toMatchObject({
    ok: false,
    fixed: 0,
    detail: expect.stringContaining("--force"),
  });
  expect(await own.head(lost)).not.toBeNull();
  const fixed = await checkup(app, { fix: true, force: true });
  expect(fixed.of("unreferenced")).toMatchObject({ ok: true, fixed: 1101 });
  const trashed = (await own.list("trash/", { limit: 1 })).objects[0]?.key as string;
  expect(trashed).toMatch(/^trash\/\d{4}-\d\d-\d\d\/tenants\/\d+\/delivered\//);
  expect(refused.of("missing")).toMatchObject({ ok: true, fixed: 1 });
  // The clock is a day ahead of S3's, and of the server's at its start.
  expect(fixed.of("clock")).toMatchObject({ ok: false, detail: expect.stringContaining("ahead of the clock of S3") });
  expect(await own.head(lost)).toBeNull();
  expect((await checkup(app)).of("unreferenced")).toMatchObject({
    ok: true,
    detail: expect.stringContaining("1 unknown"),
  });
  app.advance(9 * 24 * 3_600_000);
  await app.runTask("empty-trash");
  expect((await own.list("trash/")).objects).toEqual([]);
  expect((await own.list(`tenants/${tenant.id}/delivered/`)).objects).toEqual([]);
  expect(await own.head("notes/mine.txt")).not.toBeNull();
  expect(await own.head(contract.outputs.manifest_path)).not.toBeNull();
  expect(await neighbour.head(theirs)).not.toBeNull();
});

test("unavailable storage makes no object missing", async () => {
  const dead = createServer((_, response) => response.writeHead(500).end());
  await new Promise<void>((resolve) => dead.listen(0, "127.0.0.1", resolve));
  atEnd(() => void dead.close());
  const endpoint = `http://127.0.0.1:${(dead.address() as AddressInfo).port}`;
  const app = await testApp({ storage: "s3", ...s3Settings({ ...s3, endpoint }, "dead") });
  const looked = await checkup(app, { fix: true });
  expect(looked.of("storage").ok).toBe(false);
  expect(looked.of("missing")).toMatchObject({
    ok: false,
    fixed: 0,
    detail: expect.stringContaining("not checked"),
  });
  const { text } = await app.call("GET", "/metrics", { admin: app.admin });
  expect(text).toMatch(/^vodbox_storage_errors_total\{reason="unavailable"\} [1-9]/m);
});

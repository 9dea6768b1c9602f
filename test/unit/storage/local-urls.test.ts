import { eq } from "drizzle-orm";
import { expect, test } from "vitest";
import { uploads } from "#storage/db/schema.ts";
import { type TestApp, testApp } from "#test/support/app.ts";
import { expectError } from "#test/support/error.ts";
import { addressContract, CONTRACT_KEY } from "#test/support/storage/url-contract.ts";

/** An upload of tenant 1 that waits for bytes at `objectKey`: without one its URLs are refused. */
async function awaiting(objectKey: string): Promise<TestApp> {
  const app = await testApp();
  const { id } = await app.tenant();
  expect(objectKey).toContain(`tenants/${id}/`);
  const body = { filename: "a.mp4", bytes_expected: 10 };
  const { body: upload } = await app.as(await app.key(id)).initiateUpload(body);
  await app.opened.app.write(async (tx) => tx.update(uploads).set({ objectKey }).where(eq(uploads.id, upload.id)));
  return app;
}

addressContract("local addresses", async () => {
  const app = await awaiting(CONTRACT_KEY);
  return {
    store: app.opened.app.objects as NonNullable<typeof app.opened.app.objects>,
    send: app.opened.server.fetch,
    pass: async () => app.advance(5000),
  };
});

test("a part that is too large is 413, one of an ended upload 409; its ETag is readable by any site", async () => {
  const key = "tenants/1/sources/a.mp4";
  const app = await awaiting(key);
  const { objects } = app.opened.app;
  if (!objects) throw new Error("There is no storage");
  const uploadId = await objects.createMultipart(key, { bytes: 6, partSize: 4 });
  const expiresAt = new Date(Date.now() + 60_000);
  const sign = async (number: number, maxBytes: number) =>
    (await objects.signPart(key, uploadId, number, { expiresAt, maxBytes })).url;
  expectError(await app.call("PUT", await sign(1, 4), { raw: "12345" }), 413, "payload_too_large");
  // The last part has the remaining size, whatever was signed.
  expectError(await app.call("PUT", await sign(2, 4), { raw: "123" }), 413, "payload_too_large");
  expectError(await app.call("PUT", await sign(3, 4), { raw: "1" }), 409, "upload_conflict");
  const put = await app.call("PUT", await sign(1, 4), { raw: "1234" });
  expect([put.status, put.headers.get("access-control-allow-origin")]).toEqual([200, "*"]);
  expect(put.headers.get("access-control-expose-headers")).toContain("ETag");
  expect(await objects.listParts(key, uploadId)).toHaveLength(1);
  const late = await sign(1, 4);
  await objects.abortMultipart(key, uploadId);
  expectError(await app.call("PUT", late, { raw: "1234" }), 409, "upload_conflict");
});

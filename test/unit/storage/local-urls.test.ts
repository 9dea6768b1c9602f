import { expect, test } from "vitest";
import { testApp } from "../../support/app.ts";
import { expectError } from "../../support/error.ts";
import { addressContract } from "../../support/storage/url-contract.ts";

addressContract("local addresses", async () => {
  const app = await testApp();
  return {
    store: app.opened.app.objects as NonNullable<typeof app.opened.app.objects>,
    send: app.opened.server.fetch,
    pass: async () => app.advance(5000),
  };
});

test("a part that is too large is 413, one of an ended upload 409; its ETag is readable by any site", async () => {
  const app = await testApp();
  const { objects } = app.opened.app;
  if (!objects) throw new Error("There is no storage");
  const key = "tenants/1/sources/a.mp4";
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

import { expect, test } from "vitest";
import { testApp } from "../support/app.ts";

async function tenantWithKey() {
  const app = await testApp();
  const tenant = await app.tenant();
  return { app, tenant, key: await app.key(tenant.id) };
}

test("an upload is initiated, put, completed once and queued once", async () => {
  const { app, tenant, key } = await tenantWithKey();
  const bytes = new Uint8Array(1000).fill(7);
  const initiated = await app.call("POST", "/api/v1/uploads/initiate", {
    key,
    body: { filename: "a clip.mp4", bytes_expected: 1000, content_type: "video/mp4" },
  });
  expect(initiated.status).toBe(201);
  expect(initiated.body).toMatchObject({
    tenant_id: tenant.id,
    status: "pending",
    bytes_expected: 1000,
    bytes_received: null,
    upload_method: "PUT",
  });
  expect((await app.newEvents()).map((event) => event.type)).toEqual([]);

  const put = await app.call("PUT", initiated.body.upload_url, { raw: bytes, headers: initiated.body.upload_headers });
  expect(put.status).toBe(200);
  expect(put.headers.get("etag")).toMatch(/^".+"$/);

  const complete = () =>
    app.call("POST", `/api/v1/uploads/${initiated.body.id}/complete`, { key, body: { bytes_received: 1000 } });
  const completed = await complete();
  expect(completed.status).toBe(200);
  expect(completed.body).toMatchObject({
    status: "completed",
    bytes_received: 1000,
    asset: {
      input_status: "uploaded",
      playback_status: "processing",
      source_bytes: 1000,
      title: "a clip",
      original_filename: "a clip.mp4",
    },
    transcoding_job: { status: "queued" },
  });
  expect((await app.newEvents()).map((event) => event.type)).toEqual(["video.upload.completed", "video.job.queued"]);

  const again = await complete();
  expect(again.status).toBe(200);
  expect(again.body).toEqual(completed.body);
  expect(await app.newEvents()).toEqual([]);
  expect((await app.call("PUT", initiated.body.upload_url, { raw: bytes })).status).toBe(409);
});

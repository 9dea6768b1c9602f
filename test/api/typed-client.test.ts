import createClient from "openapi-fetch";
import { beforeAll, describe, expect, test } from "vitest";
import type { paths } from "../../build/client/api.d.ts";
import { type TestApp, testApp } from "../support/app.ts";
import { putArtifacts } from "../support/flow.ts";

/**
 * A customer's program: written against types that were generated from the OpenAPI document, and nothing else. It does
 * not compile when the document is wrong about a request or an answer, and does not pass when the server is.
 */
let app: TestApp;
let tenantId: number;
let api: ReturnType<typeof createClient<paths>>;
let worker: ReturnType<typeof createClient<paths>>;

const clientWith = (headers: Record<string, string>) =>
  createClient<paths>({ baseUrl: "http://vodbox.test", headers, fetch: (request) => app.opened.server.fetch(request) });

/** What a program does with an answer: take the data, or stop with the server's own words. */
async function ok<T>(answer: Promise<{ data?: T; error?: { error: string; code: string } }>): Promise<T> {
  const { data, error } = await answer;
  if (error) throw new Error(`${error.code}: ${error.error}`);
  return data as T;
}

beforeAll(async () => {
  app = await testApp();
  tenantId = (await app.tenant()).id;
  api = clientWith({ "X-API-Key": await app.key(tenantId) });
  worker = clientWith({ "X-SVC-WORKER-TOKEN": app.worker });
  return app.close;
});

async function videoReady(title: string) {
  const started = await ok(
    api.POST("/api/v1/uploads/initiate", {
      body: { filename: "a.mp4", bytes_expected: 5, title, tags: { year: 2026 } },
    }),
  );
  const put = { method: started.upload_method, headers: started.upload_headers, body: "video" };
  expect((await app.opened.server.fetch(new Request(started.upload_url, put))).status).toBe(200);
  const done = await ok(
    api.POST("/api/v1/uploads/{id}/complete", { params: { path: { id: started.id } }, body: { bytes_received: 5 } }),
  );
  const contract = await ok(
    worker.POST("/api/v1/transcoding_jobs/next", { params: { header: { "Idempotency-Key": title } }, body: {} }),
  );
  if (!contract?.lease) throw new Error("no job");
  const leased = clientWith({ "X-SVC-WORKER-TOKEN": app.worker, "X-SVC-JOB-LEASE-TOKEN": contract.lease.token });
  const at = { params: { path: { id: contract.job.id } } };
  const beat = await ok(leased.POST("/api/v1/transcoding_jobs/{id}/heartbeat", { ...at, body: { progress: 50 } }));
  expect(beat.cancel_requested).toBe(false);
  const body = await putArtifacts(app, contract);
  const job = await ok(leased.POST("/api/v1/transcoding_jobs/{id}/complete", { ...at, body }));
  expect([job.status, done.asset.id]).toEqual(["completed", contract.job.asset_id]);
  return done.asset;
}

describe("a client of generated types", () => {
  test("uploads, has transcoded, plays, changes and deletes", async () => {
    const { id, external_id } = await videoReady("First");
    const path = { id };
    const playback = await ok(api.GET("/api/v1/playback/{id}", { params: { path: { id: external_id } } }));
    expect((await app.call("GET", playback.hls_url)).text).toContain("#EXTM3U");
    const video_asset = { title: "Renamed", description: null };
    const changed = await ok(api.PATCH("/api/v1/assets/{id}", { params: { path }, body: { video_asset } }));
    expect([changed.title, changed.playback_status, changed.error?.code]).toEqual(["Renamed", "ready", undefined]);
    const tags = await ok(
      api.PATCH("/api/v1/assets/{id}/tags", { params: { path }, body: { year: null, place: "x" } }),
    );
    expect(tags).toEqual({ place: "x" });
    const source = await ok(api.GET("/api/v1/assets/{id}/download", { params: { path } }));
    expect((await app.call(source.method, source.url)).text).toBe("video");
    const listed = await ok(api.GET("/api/v1/assets", { params: { query: { q: "Renamed", limit: 1 } } }));
    expect(listed.map((asset) => asset.id)).toEqual([id]);
    const deleted = await api.DELETE("/api/v1/assets/{id}", { params: { path } });
    expect(deleted.response.status).toBe(204);
    const gone = await api.GET("/api/v1/assets/{id}", { params: { path } });
    expect([gone.response.status, gone.error?.code]).toEqual([404, "not_found"]);
  });

  test("adds subtitles and tracks to a video", async () => {
    const { id } = await videoReady("Second");
    const path = { video_asset_id: id };
    const added = await ok(
      api.POST("/api/v1/assets/{video_asset_id}/subtitles", {
        params: { path },
        body: { file: "1\n00:00:00,000 --> 00:00:01,000\nHi\n", language: "en", label: "English", is_default: true },
        bodySerializer({ file, ...fields }) {
          const form = new FormData();
          form.append("file", new File([file], "en.srt"));
          for (const [name, value] of Object.entries(fields)) form.append(name, String(value));
          return form;
        },
      }),
    );
    expect([added.language, added.is_default, added.source]).toEqual(["en", true, "upload"]);
    const one = await ok(
      api.GET("/api/v1/assets/{video_asset_id}/subtitles/{id}", { params: { path: { ...path, id: added.id } } }),
    );
    expect(one.content).toMatch(/^WEBVTT/);
    const cues = [{ start_ms: 0, payload: { title: "Start" } }];
    const track = await ok(
      api.PUT("/api/v1/assets/{video_asset_id}/tracks", { params: { path }, body: { kind: "chapter", cues } }),
    );
    expect([track.status, track.cues?.[0]?.start_ms]).toEqual(["ready", 0]);
  });

  test("hands out keys", async () => {
    const made = await ok(api.POST("/api/v1/api_keys", { body: { tenant_id: tenantId, scopes: ["assets:read"] } }));
    const theirs = clientWith({ "X-API-Key": made.token ?? "" });
    expect((await ok(theirs.GET("/api/v1/tenants"))).map(({ id }) => id)).toEqual([tenantId]);
    const refused = await theirs.DELETE("/api/v1/api_keys/{id}", { params: { path: { id: made.id } } });
    expect(refused.error?.required_scopes).toEqual(["api_keys:write"]);
  });
});

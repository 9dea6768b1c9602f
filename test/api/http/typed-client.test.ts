import createClient from "openapi-fetch";
import { beforeAll, describe, expect, test } from "vitest";
import type { paths } from "#build/client/api.d.ts";
import { type TestApp, testApp } from "#test/support/app.ts";
import { putArtifacts } from "#test/support/flow.ts";

/**
 * A customer's program, written only against types generated from the OpenAPI document. It does not compile when the
 * document is wrong about a request or a response, and does not pass when the server is.
 */
let app: TestApp;
let tenantId: number;
let api: ReturnType<typeof createClient<paths>>;
let worker: ReturnType<typeof createClient<paths>>;

const clientWith = (headers: Record<string, string>) =>
  createClient<paths>({ baseUrl: "http://vodbox.test", headers, fetch: (request) => app.opened.server.fetch(request) });

/** How a program handles a response: use the data, or fail with the server's message. */
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
      body: { filename: "a.mp4", bytes_expected: 5, title, tags: { year: 2026 }, playback_policy: "public" },
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

describe("a client with generated types", () => {
  test("uploads, transcodes, plays, changes and deletes", async () => {
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

  test("reports playback, and reads analytics", async () => {
    const { id } = await videoReady("Watched");
    const events = [{ asset_id: id, session_id: "s", viewer_id: "v", event: "play" as const }];
    expect(await ok(api.POST("/api/v1/playback_events", { body: { events } }))).toEqual({ accepted: 1 });
    await app.runTask("record-views");
    const query = { interval: "day" as const, retention: "true" as const };
    const own = await ok(api.GET("/api/v1/assets/{id}/analytics", { params: { path: { id }, query } }));
    expect([own.asset_id, own.play_count, own.timeseries?.at(-1)?.unique_viewers, own.retention?.[0]?.viewers]).toEqual(
      [id, 1, 1, 1],
    );
    const all = await ok(api.GET("/api/v1/analytics", { params: { query: { top: 1 } } }));
    expect([all.tenant_id, all.top_assets?.[0]?.title]).toEqual([tenantId, "Watched"]);
  });

  test("assigns assets to collections", async () => {
    const { id } = await videoReady("Third");
    const collection = { name: "Films", slug: "films" };
    const made = await ok(api.POST("/api/v1/collections", { body: { tenant_id: tenantId, collection } }));
    const below = { name: "Short", slug: "short", parent_id: made.id };
    await ok(api.POST("/api/v1/collections", { body: { tenant_id: tenantId, collection: below } }));
    const [root] = await ok(api.GET("/api/v1/collections/tree"));
    expect([root?.slug, root?.children.map(({ slug }) => slug)]).toEqual(["films", ["short"]]);
    const video_asset = { collection_id: made.id };
    const filed = await ok(api.PATCH("/api/v1/assets/{id}", { params: { path: { id } }, body: { video_asset } }));
    expect(filed.collection_id).toBe(made.id);
    expect((await ok(api.GET("/api/v1/collections")))[0]?.asset_count).toBe(1);
    const removed = await api.DELETE("/api/v1/collections/{id}", { params: { path: { id: made.id } } });
    expect(removed.response.status).toBe(204);
    expect((await ok(api.GET("/api/v1/assets/{id}", { params: { path: { id } } }))).collection_id).toBe(null);
  });

  test("registers an asset, exports its data and imports them again", async () => {
    const video_asset = {
      title: "=Registered",
      input_status: "uploaded",
      playback_status: "draft",
      source_bytes: 1,
      storage_bytes: 1,
      duration_seconds: 2.5,
      source_key: `tenants/${tenantId}/sources/r.mp4`,
      original_filename: "r.mp4",
      tags: { a: "1" },
    } as const;
    const made = await ok(api.POST("/api/v1/assets", { body: { tenant_id: tenantId, video_asset } }));
    expect([made.transcoding_job?.status, made.worker_contract?.lease]).toEqual(["queued", null]);
    const rows = await ok(api.GET("/api/v1/assets/export", { params: { query: { format: "json" } } }));
    expect(rows[0]).toEqual({ title: "=Registered", description: null, tags: { a: "1" }, original_filename: "r.mp4" });
    const csv = await ok(api.GET("/api/v1/assets/export", { parseAs: "text" }));
    const changed = String(csv).replace("'=Registered", "Imported");
    const result = await ok(
      api.POST("/api/v1/assets/import", {
        body: changed,
        bodySerializer: (body) => body as string,
        headers: { "Content-Type": "text/csv" },
      }),
    );
    expect(result.applied).toContainEqual({ row: 2, asset_id: made.asset.id, changed: ["title"] });
    const graph = await ok(api.GET("/api/v1/assets/graph_export"));
    expect([graph.schema_version, graph.assets.some(({ title }) => title === "Imported")]).toEqual([1, true]);
    const same = { params: { query: { filename: "r.mp4", bytes: 1 } } };
    const { duplicates } = await ok(api.GET("/api/v1/assets/duplicates", same));
    expect(duplicates.map(({ asset_id, match }) => [asset_id, match])).toEqual([[made.asset.id, "name_size"]]);
    const jobs = await ok(api.GET("/api/v1/transcoding_jobs", { params: { query: { asset_id: made.asset.id } } }));
    expect(jobs.map(({ status }) => status)).toEqual(["queued"]);
    const retried = await api.POST("/api/v1/assets/{id}/retry", { params: { path: { id: made.asset.id } } });
    expect(retried.error?.code).toBe("asset_conflict");
    const operator = clientWith({ "X-SVC-ADMIN-TOKEN": app.admin });
    const at = { params: { path: { id: made.transcoding_job?.id ?? 0 } } };
    expect((await ok(operator.POST("/api/v1/transcoding_jobs/{id}/cancel", at))).status).toBe("canceled");
  });

  test("returns the data for VR players", async () => {
    const { id } = await videoReady("Fourth");
    const manifest = await ok(api.GET("/api/v1/assets/{id}/vr_manifest.json", { params: { path: { id } } }));
    // DeoVR's format is the default.
    if (!("encodings" in manifest)) throw new Error("another form");
    const url = manifest.encodings[0]?.["video-sources"][0]?.url ?? "";
    expect((await app.call("GET", url)).text).toContain("#EXTM3U");
    expect(manifest.encodings[0]?.videoSources[0]?.url).toBe(url);
  });

  test("re-times subtitles, and is refused a translation without a service", async () => {
    const { id } = await videoReady("Fifth");
    const path = { video_asset_id: id };
    const lines = Array.from({ length: 9 }, (_, n) => ({ at: n * 5, text: `This is the sentence of number ${n}` }));
    const vtt = (by: number) =>
      `WEBVTT\n\n${lines.map(({ at, text }) => `00:${String(at + by).padStart(2, "0")}.000 --> 00:${String(at + by + 2).padStart(2, "0")}.000\n${text}\n`).join("\n")}`;
    const add = (language: string, content: string) => {
      const form = new FormData();
      form.append("file", new File([content], "a.vtt"));
      form.append("language", language);
      form.append("label", language);
      return ok(
        api.POST("/api/v1/assets/{video_asset_id}/subtitles", {
          params: { path },
          body: { file: "", language, label: language },
          bodySerializer: () => form,
        }),
      );
    };
    const late = await add("en", vtt(3));
    const right = await add("en-GB", vtt(0));
    const at = { params: { path: { ...path, id: late.id } } };
    const synced = await ok(
      api.POST("/api/v1/assets/{video_asset_id}/subtitles/{id}/sync", {
        ...at,
        body: { reference_track_id: right.id },
      }),
    );
    expect(synced.sync).toMatchObject({ reference_track_id: right.id, strategy: "piecewise", min_offset_seconds: -3 });
    const translated = await api.POST("/api/v1/assets/{video_asset_id}/subtitles/{id}/translate", {
      ...at,
      body: { target_language: "es" },
    });
    expect([translated.response.status, translated.error?.code]).toEqual([503, "translation_not_configured"]);
  });

  test("issues keys", async () => {
    const made = await ok(api.POST("/api/v1/api_keys", { body: { tenant_id: tenantId, scopes: ["assets:read"] } }));
    const theirs = clientWith({ "X-API-Key": made.token ?? "" });
    expect((await ok(theirs.GET("/api/v1/tenants"))).map(({ id }) => id)).toEqual([tenantId]);
    const refused = await theirs.DELETE("/api/v1/api_keys/{id}", { params: { path: { id: made.id } } });
    expect(refused.error?.required_scopes).toEqual(["api_keys:write"]);
  });
});

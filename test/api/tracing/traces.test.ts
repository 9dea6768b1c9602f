import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { rows } from "#test/support/amount.ts";
import { until } from "#test/support/descendants.ts";
import { uploaded } from "#test/support/flow.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { fast, ffmpeg, picture, sound } from "#test/support/media/sources.ts";
import { type Collector, collector, type ReceivedSpan, tracing } from "#test/support/otlp.ts";
import { lineOf, run, startServer, stopCleanly, tenantKey, vodbox } from "#test/support/process.ts";
import { receiver } from "#test/support/receiver.ts";

const SCOPES = ["assets:read", "assets:write", "playback:read", "webhooks:read", "webhooks:write"];
const TITLE = "A title that is nobody's business";
const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const traceparent = (flags = "01") => `00-${TRACE}-00f067aa0ba902b7-${flags}`;

async function video(): Promise<Buffer> {
  const path = join(emptyFolder(), "clip.mp4");
  await ffmpeg(...picture("64x36", "25", 2), ...sound(2), ...fast, "-c:a", "aac", path);
  return readFileSync(path);
}

const named = ({ spans }: Collector, name: string) => spans.filter((span) => span.name === name);
const spanNamed = (all: Collector, name: string): Promise<ReceivedSpan> =>
  until(`the span ${name}`, () => named(all, name)[0] ?? null);

/** The names of a span and of its parents, up to the first of its trace. */
function pathOf({ spans }: Collector, span: ReceivedSpan): string[] {
  const parent = spans.find(({ spanId, traceId }) => spanId === span.parentSpanId && traceId === span.traceId);
  if (!parent && span.parentSpanId !== "") throw new Error(`${span.name}: its parent ${span.parentSpanId} is missing`);
  return parent ? [span.name, ...pathOf({ spans } as Collector, parent)] : [span.name];
}

describe("an upload", () => {
  test.each(rows([["with a worker elsewhere", 0] as const, ["with the server's worker", 1] as const], 1))(
    "is one trace, from the request to ffmpeg and the webhook, %s",
    async (_, workers) => {
      const traces = await collector();
      const hook = await receiver();
      const env = tracing(traces, {
        OTEL_SERVICE_NAME: "videos",
        OTEL_EXPORTER_OTLP_HEADERS: "x-tenant=secret-of-the-collector",
      });
      const server = await startServer(emptyFolder(), {
        args: ["--workers", String(workers)],
        env: { ...env, VODBOX_WEBHOOK_ALLOW_CIDRS: "127.0.0.0/8" },
      });
      const key = await tenantKey(server, SCOPES);
      const { status } = await server.as(key).createWebhook({ url: `${hook.url}?code=hook-secret` });
      expect(status).toBe(201);
      const { asset } = await uploaded(server, key, { bytes: await video(), title: TITLE });
      const remote = { ...env, VODBOX_WORKER_TOKEN: server.worker };
      const args = ["worker", "--server", server.base, "--scratch", emptyFolder()];
      const worker = workers === 0 ? vodbox(args, { env: remote }) : null;
      const delivery = await until(
        "the delivery",
        () => hook.received.find(({ json }) => json.event === "video.asset.ready") ?? null,
      );
      if (worker) await stopCleanly(worker);
      await stopCleanly(server);
      const webhook = named(traces, "webhook").find(
        ({ attributes }) => attributes["vodbox.event.type"] === "video.asset.ready",
      ) as ReceivedSpan;
      const complete = "POST /api/v1/uploads/:id/complete";
      const path = pathOf(traces, webhook);
      expect([path[0], path.at(-1), path.some((name) => name.startsWith("job "))]).toEqual(["webhook", complete, true]);
      expect(delivery.headers.traceparent).toBe(`00-${webhook.traceId}-${webhook.spanId}-01`);
      const runs = traces.spans.filter(({ name, traceId }) => name === "ffmpeg" && traceId === webhook.traceId);
      expect(runs.length).toBeGreaterThan(0);
      for (const one of runs) {
        expect(pathOf(traces, one)).toEqual(["ffmpeg", expect.stringMatching(/^job /), complete]);
        expect(one.nanoseconds).toBeGreaterThan(0);
        expect(one.resource).toMatchObject({ "service.name": "videos", "vodbox.role": "worker" });
      }
      const job = traces.spans.find(({ name }) => name.startsWith("job ")) as ReceivedSpan;
      expect(job.attributes).toMatchObject({ "vodbox.asset.id": asset.id, "vodbox.job.end": "completed" });
      const [request] = named(traces, complete);
      expect(request).toMatchObject({
        kind: 2,
        status: 0,
        attributes: {
          "http.request.method": "POST",
          "http.response.status_code": 200,
          "vodbox.operation": "completeUpload",
        },
        resource: { "service.name": "videos", "vodbox.role": "serve" },
      });
      // Workers poll, and pages are loaded, without spans.
      expect(traces.spans.filter(({ name }) => /\/next$|heartbeat|healthz/.test(name))).toEqual([]);
      expect(traces.headers.every((one) => one["x-tenant"] === "secret-of-the-collector")).toBe(true);
      expect(new Set(traces.headers.map(({ url }) => url))).toEqual(new Set(["/v1/traces"]));
      // Nothing that is secret, or anybody's: values of URLs, texts, credentials, the database.
      for (const secret of [
        key,
        server.admin,
        server.worker,
        TITLE,
        "hook-secret",
        "token=",
        "signature",
        "clip.mp4",
        "/tmp/",
      ])
        expect([secret, traces.raw().includes(secret)]).toEqual([secret, false]);
      expect(JSON.stringify(traces.spans.map(({ name, attributes }) => [name, attributes]))).not.toContain("?");
    },
  );
});

describe("the trace of a client", () => {
  const scene = async (more: Record<string, string>) => {
    const traces = await collector();
    const server = await startServer(emptyFolder(), { env: tracing(traces, more) });
    const key = await tenantKey(server);
    const assets = (flags: string, credential: object) =>
      server.as({ ...credential, headers: { traceparent: traceparent(flags) } }).listAssets();
    return { traces, server, key, assets };
  };
  const LIST = "GET /api/v1/assets";

  test("is a link of a trace that the server samples itself", async () => {
    const { traces, server, key, assets } = await scene({});
    expect((await assets("00", { key })).status).toBe(200);
    const span = await spanNamed(traces, LIST);
    expect([span.traceId === TRACE, span.parentSpanId, span.links]).toEqual([
      false,
      "",
      [{ traceId: TRACE, spanId: "00f067aa0ba902b7" }],
    ]);
    for (const invalid of [
      "x",
      traceparent().toUpperCase(),
      `00-${"0".repeat(32)}-00f067aa0ba902b7-01`,
      "9".repeat(5000),
    ]) {
      const { status } = await server.as({ key, headers: { traceparent: invalid } }).listCollections();
      expect(status).toBe(200);
    }
    await until("the other requests", () => named(traces, "GET /api/v1/collections").length === 4);
    expect(named(traces, "GET /api/v1/collections").flatMap(({ links }) => links)).toEqual([]);
  });

  test.each(rows(["parentbased_traceidratio", "always_off", "parentbased_always_off", "traceidratio"], 2))(
    "does not make %s of a server record it",
    async (sampler) => {
      const { traces, server, key, assets } = await scene({
        OTEL_TRACES_SAMPLER: sampler,
        OTEL_TRACES_SAMPLER_ARG: "0",
      });
      for (let index = 0; index < 20; index++) expect((await assets("01", { key })).status).toBe(200);
      expect((await assets("01", {})).status).toBe(401);
      await stopCleanly(server);
      expect(traces.spans).toEqual([]);
    },
  );

  test("is continued with the admin token, and with a key where a setting says so", async () => {
    const off = { OTEL_TRACES_SAMPLER: "parentbased_always_off" };
    const workers = "GET /api/v1/admin/workers";
    const { traces, server } = await scene(off);
    const headers = { traceparent: traceparent() };
    expect((await server.as({ admin: server.admin, headers }).listWorkers()).status).toBe(200);
    expect(await spanNamed(traces, workers)).toMatchObject({
      traceId: TRACE,
      parentSpanId: "00f067aa0ba902b7",
      links: [],
    });
    const trusting = await scene({ ...off, VODBOX_TRUST_TRACEPARENT: "1" });
    expect((await trusting.assets("01", { key: trusting.key })).status).toBe(200);
    expect(await spanNamed(trusting.traces, LIST)).toMatchObject({ traceId: TRACE, parentSpanId: "00f067aa0ba902b7" });
    // Anybody can send requests without a key.
    const anyone = await trusting.server.call("GET", "/api/v1/public/nothing", { headers });
    expect(anyone.status).toBe(404);
  });

  test("through Mux's API is a link too, and the requests that it becomes are below it", async () => {
    const { traces, server, key } = await scene({});
    const { asset } = await uploaded(server, key);
    const answer = await server.call("POST", `/mux/video/v1/assets/${asset.id}/playback-ids`, {
      headers: {
        authorization: `Basic ${Buffer.from(`any:${key}`).toString("base64")}`,
        traceparent: traceparent(),
      },
      body: { policy: "public" },
    });
    expect(answer.status, answer.text).toBe(201);
    const outer = await spanNamed(traces, "POST /mux/**:path");
    const inner = await spanNamed(traces, "POST /api/v1/assets/:id/playback_ids");
    expect(pathOf(traces, inner)).toEqual([inner.name, outer.name]);
    expect([outer.traceId === TRACE, outer.links.map(({ traceId }) => traceId), inner.links]).toEqual([
      false,
      [TRACE],
      [],
    ]);
  });

  test("of an import continues in the server", async () => {
    const { traces, server, key } = await scene({ VODBOX_TRUST_TRACEPARENT: "1" });
    const cwd = emptyFolder();
    const videos = emptyFolder();
    writeFileSync(join(videos, "film.mp4"), await video());
    const env = tracing(traces, { VODBOX_SERVER: server.base, VODBOX_KEY: key });
    const imported = await run(["import", "folder", videos, "--no-wait"], { env, cwd });
    expect(imported, imported.stderr).toMatchObject({ code: 0 });
    const initiate = await until(
      "the upload",
      () =>
        traces.spans.find(({ name }) => name === "POST /api/v1/uploads/:id/complete" || name.includes("initiate")) ??
        null,
    );
    await spanNamed(traces, "import video");
    expect(pathOf(traces, initiate).at(-1)).toBe("import video");
    expect(named(traces, "import video")[0]).toMatchObject({
      attributes: { "vodbox.provider": "folder" },
      resource: { "service.name": "vodbox", "vodbox.role": "import" },
    });
  });
});

describe("without an endpoint", () => {
  const HOOK = `data:text/javascript,${encodeURIComponent(
    `import { registerHooks } from "node:module";
     registerHooks({ load(url, context, next) { if (/opentelemetry|src\\/otel/.test(url)) console.error("LOADED " + url); return next(url, context); } });`,
  )}`;
  const NODE_OPTIONS = `--import=${HOOK}`;

  test("nothing of the SDK is loaded", async () => {
    const traces = await collector();
    const all: [Record<string, string>, boolean][] = [
      [{}, false],
      [tracing(traces), true],
      [{ ...tracing(traces), OTEL_SDK_DISABLED: "true" }, false],
    ];
    for (const [env, isLoaded] of rows(all, 2)) {
      const server = vodbox(["serve", "--data", emptyFolder(), "--port", "0", "--workers", "0"], {
        env: { ...env, NODE_OPTIONS },
        fromSources: true,
      });
      await lineOf(server, /^vodbox ready on (\S+)$/m);
      await stopCleanly(server);
      expect([env, server.stderr().includes("LOADED")]).toEqual([env, isLoaded]);
    }
  });

  test.each([
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: "collector:4317" }, /must be an HTTP URL/],
    [{ OTEL_EXPORTER_OTLP_PROTOCOL: "grpc" }, /grpc is not supported/],
    [{ OTEL_TRACES_SAMPLER: "constructor" }, /OTEL_TRACES_SAMPLER must be one of/],
    [{ OTEL_TRACES_SAMPLER: "traceidratio", OTEL_TRACES_SAMPLER_ARG: "2" }, /from 0 to 1/],
  ])("%j is refused at the start", async (env, message) => {
    const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:4318" };
    const args = ["serve", "--data", emptyFolder(), "--port", "0", "--workers", "0"];
    const ended = await run(args, { env: { ...endpoint, ...env } });
    expect(ended.code).toBe(2);
    expect(ended.stderr).toMatch(message);
  });
});

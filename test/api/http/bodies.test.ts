import { request } from "node:http";
import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Route } from "#platform/http/route.ts";
import { type TestApp, testApp } from "#test/support/app.ts";
import { expectError } from "#test/support/error.ts";
import { uploaded } from "#test/support/flow.ts";
import { newFolder, removeFolder } from "#test/support/folder.ts";
import { type RunningServer, startServer, tenantKey } from "#test/support/process.ts";
import { signIn } from "#test/support/sessions.ts";
import { VTT } from "#test/support/subtitles.ts";

describe("a JSON body that is not an object", () => {
  const ODD = ["null", "[]", "[{}]", '"x"', "1", "true", "false"];
  const json = { "content-type": "application/json" };
  let app: TestApp;
  let routes: readonly Route[];
  let ofSession = {};
  beforeAll(async () => {
    app = await testApp({
      rate_limit_uploads: "1000000/60",
      rate_limit_billing: "1000000/60",
      rate_limit_device_tokens: "1000000/60",
      rate_limit_live: "1000000/60",
      rate_limit_translate: "1000000/60",
      rate_limit_sync: "1000000/60",
    });
    routes = app.opened.routes.filter(({ body, form }) => body && !form);
    const { cookie, csrf } = await signIn(app, { admin_token: app.admin });
    ofSession = { cookie, "x-csrf-token": csrf };
    return app.close;
  });

  const credentials = (route: Route) => ({
    ...(route.credential === "worker" ? { worker: app.worker, lease: "x".repeat(43) } : { admin: app.admin }),
    ...(route.credential === "gateway" && { bearer: app.opened.app.secrets.live_token }),
  });
  const send = (route: Route, raw: string | undefined) => {
    const path = route.path.replaceAll(/:(\w+)/g, (_, name) => (name === "ref" ? "t" : "1"));
    const required = Object.fromEntries((route.requiredHeaders ?? []).map((name) => [name.toLowerCase(), "1"]));
    const headers = { ...json, ...required, ...(route.credential === "session" && ofSession) };
    return app.call(route.method, path, { ...credentials(route), headers, ...(raw !== undefined && { raw }) });
  };

  test("is 422 on every route with a JSON body, before any other check", async () => {
    expect(routes.length).toBeGreaterThan(50);
    for (const route of routes)
      for (const raw of ODD) {
        const { status, body } = await send(route, raw);
        const name = `${route.method} ${route.path} ${raw}`;
        // JSON-RPC has errors of its own.
        if (route.path === "/mcp") {
          expect.soft([status, body?.error?.code], name).toEqual([400, -32_600]);
          continue;
        }
        // A row declares which other media types it accepts.
        expect
          .soft([status, ["parameter_missing", "validation_failed"].includes(body?.code)], name)
          .toEqual([422, true]);
      }
  });

  test("a change without a body is 422, too", async () => {
    const changes = routes.filter(({ method }) => method === "PATCH");
    expect(changes.length).toBeGreaterThan(5);
    for (const route of changes)
      for (const raw of [undefined, ""])
        expectError(await send(route, raw), 422, "parameter_missing", `${route.method} ${route.path}`);
  });

  test("changes no tags", async () => {
    const key = await app.key((await app.tenant()).id);
    const { asset } = await uploaded(app, key, { tags: { a: 1 } });
    const at = `/api/v1/assets/${asset.id}/tags`;
    for (const raw of [...ODD, "", "  "]) {
      const answer = await app.call("PATCH", at, { key, raw, headers: json });
      expect.soft([answer.status, raw], answer.text).toEqual([raw.trim() === "" && raw !== "" ? 400 : 422, raw]);
    }
    expect((await app.as(key).updateTags(asset.id, {})).body).toEqual({ a: 1 });
    for (const video_asset of [null, [], "x", 1, true])
      expectError(
        await app.as(key).unchecked.updateAsset(asset.id, { video_asset }),
        422,
        "parameter_missing",
        JSON.stringify(video_asset),
      );
  });
});

describe("a truncated form", () => {
  const folder = newFolder();
  let server: RunningServer;
  let key = "";
  let subtitles = "";
  beforeAll(async () => {
    server = await startServer(folder);
    key = await tenantKey(server, ["assets:read", "assets:write"]);
    const initiated = await server.as(key).initiateUpload({ filename: "a.mp4", bytes_expected: 3 });
    subtitles = `/api/v1/assets/${initiated.body.asset_id}/subtitles`;
    return () => removeFolder(folder);
  });
  afterAll(async () => {
    server.child.kill("SIGKILL");
    await server.ended;
  });

  const BOUNDARY = "----boundary7MA4";
  const part = (head: string, content: string) =>
    `--${BOUNDARY}\r\nContent-Disposition: form-data; ${head}\r\n\r\n${content}\r\n`;
  const form = (file: string, content: string, fields: Record<string, string>) =>
    `${Object.entries(fields)
      .map(([name, value]) => part(`name="${name}"`, value))
      .join("")}${part(`name="file"; filename="${file}"`, content)}--${BOUNDARY}--\r\n`;
  const type = `multipart/form-data; boundary=${BOUNDARY}`;
  const FORMS = () => ({
    subtitles: { path: subtitles, whole: form("a.vtt", VTT, { language: "en", label: "English" }), ok: 201 },
    csv: {
      path: "/api/v1/assets/import",
      whole: form("a.csv", "title,description,tags,original_filename\nT,,,none.mp4\n", {}),
      ok: 200,
    },
  });

  type Sent = { length?: number; chunked?: boolean };
  /** Sends `text` as a complete body: Content-Length does not reveal that some of it is missing. */
  const post = (path: string, text: string, { length = Buffer.byteLength(text), chunked = false }: Sent = {}) =>
    new Promise<{ status: number; code: string }>((resolve, reject) => {
      const url = new URL(path, server.base);
      const headers = {
        "content-type": type,
        "x-api-key": key,
        ...(chunked ? { "transfer-encoding": "chunked" } : { "content-length": length }),
      };
      const sent = request(url, { method: "POST", headers, agent: false }, async (answer) => {
        const body = Buffer.concat(await answer.toArray()).toString();
        resolve({ status: answer.statusCode as number, code: body ? JSON.parse(body).code : "" });
      });
      sent.on("error", reject);
      sent.end(text);
    });

  test.each(["subtitles", "csv"] as const)("at any byte is 400 incomplete_body: %s", async (name) => {
    const { path, whole, ok } = FORMS()[name];
    const end = whole.lastIndexOf("--\r\n") + 2;
    const cuts = [...Array(whole.length).keys()].filter((at) => at > 0 && at < end);
    const others: unknown[] = [];
    for (const chunked of [false, true])
      for (const at of cuts.filter((at) => !chunked || at % 7 === 0)) {
        const { status, code } = await post(path, whole.slice(0, at), { chunked });
        if (status !== 400 || code !== "incomplete_body") others.push([at, whole.slice(at - 12, at), status, code]);
      }
    expect(others).toEqual([]);
    // The line break after the last boundary is optional (RFC 2046, 5.1.1).
    expect((await post(path, whole.slice(0, end))).status).toBe(ok);
    const listed = await server.call("GET", subtitles, { key });
    expect(listed.body).toHaveLength(1);
  });

  test.each(["subtitles", "csv"] as const)("by a broken connection does no harm: %s", async (name) => {
    const { path, whole } = FORMS()[name];
    const before = (await server.call("GET", subtitles, { key })).body.length;
    const { port, host } = new URL(server.base);
    for (const framing of [`content-length: ${whole.length}`, "transfer-encoding: chunked"])
      for (const how of ["destroy", "resetAndDestroy", "end"] as const)
        await new Promise<void>((resolve) => {
          const half = whole.slice(0, whole.length - 30);
          const body = framing.startsWith("content") ? half : `${half.length.toString(16)}\r\n${half}\r\n`;
          const head = `POST ${path} HTTP/1.1\r\nhost: ${host}\r\nx-api-key: ${key}\r\ncontent-type: ${type}\r\n${framing}\r\n\r\n`;
          const socket = connect(Number(port), "127.0.0.1", () => {
            socket.write(head + body, () => socket[how]());
          });
          socket.on("error", () => {}).on("close", () => resolve());
          socket.resume();
        });
    expect((await server.call("GET", subtitles, { key })).body).toHaveLength(before);
    expect(server.stderr()).toBe("");
  });

  test("a malformed form is reported as such", async () => {
    const other = await post(subtitles, "title=1&file=2&more=333333333333333333333333333333");
    expect(other).toEqual({ status: 422, code: "validation_failed" });
  });
});

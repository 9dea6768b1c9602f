import { createConfig, lintFromString } from "@redocly/openapi-core";
import { Validator } from "@seriousme/openapi-schema-validator";
import { beforeAll, describe, expect, test } from "vitest";
import { type TestApp, testApp } from "../support/app.ts";
import { conformance } from "../support/conform.ts";

type Operation = {
  operationId: string;
  summary?: string;
  parameters: { name: string; in: string; required: boolean }[];
  requestBody?: { content: Record<string, { schema: unknown }> };
  responses: Record<string, { content?: Record<string, { schema: unknown }> }>;
  security: Record<string, unknown>[];
};
type Document = { openapi: string; info: { version: string }; paths: Record<string, Record<string, Operation>> };

let app: TestApp;
let document: Document;
beforeAll(async () => {
  app = await testApp();
  document = (await app.call("GET", "/api/v1/openapi.json")).body;
  return app.close;
});
const operations = () =>
  Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      name: `${method.toUpperCase()} ${path}`,
      path,
      operation,
    })),
  );

describe("the OpenAPI document", () => {
  test("is valid OpenAPI 3.0.3, version 1.0.0 of the interface", async () => {
    expect([document.openapi, document.info.version]).toEqual(["3.0.3", "1.0.0"]);
    const result = await new Validator({ strict: false }).validate(structuredClone(document));
    expect(result.errors).toBe(undefined);
    expect(result.valid).toBe(true);
  });

  test("is found clean by a linter that others trust, examples included", async () => {
    const config = await createConfig({ extends: ["recommended-strict"] });
    const problems = await lintFromString({ source: JSON.stringify(document), config });
    const told = problems.map(({ ruleId, message, location }) => `${ruleId} ${location[0]?.pointer} ${message}`);
    // Health has nothing that a client could do wrong.
    const known = told.filter((each) => /^operation-4xx-response #\/paths\/~1(healthz|readyz)\/get/.test(each));
    expect(known).toHaveLength(2);
    expect(told.filter((each) => !known.includes(each))).toEqual([]);
  });

  test("shows an example of every body and every answer, and none that is only a placeholder", () => {
    for (const { name, operation } of operations()) {
      const bodies = [operation.requestBody, ...Object.values(operation.responses)];
      const media = bodies.flatMap((body) => Object.entries(body?.content ?? {}));
      for (const [type, content] of media.filter(([type]) => /json|form/.test(type)))
        expect.soft((content as { example?: unknown }).example, `${name} ${type}`).toBeDefined();
    }
  });

  test("has every route of the table that is not hidden, and no other", () => {
    const routes = app.opened.routes
      .filter((route) => !route.hidden)
      .flatMap((route) =>
        [route.method, route.alias]
          .filter((method) => method !== undefined)
          .map((method) => `${method} ${route.path.replaceAll(/:(\w+)/g, "{$1}")}`),
      );
    expect(
      operations()
        .map(({ name }) => name)
        .sort(),
    ).toEqual(routes.sort());
  });

  test("names each operation once, and says of each what it is", () => {
    const ids = operations().map(({ operation }) => operation.operationId);
    expect(new Set(ids).size).toBe(ids.length);
    for (const { name, path, operation } of operations()) {
      expect.soft(operation.operationId, name).toMatch(/^[a-z][A-Za-z0-9]+$/);
      expect.soft(operation.summary, name).toMatch(/\S/);
      const inPath = [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1]).sort();
      const named = operation.parameters.filter((parameter) => parameter.in === "path");
      expect.soft(named.map((parameter) => parameter.name).sort(), name).toEqual(inPath);
      expect
        .soft(
          Object.keys(operation.responses).some((status) => status.startsWith("2")),
          name,
        )
        .toBe(true);
    }
  });

  test("says which headers a worker must send, and what a client may", () => {
    const headersOf = (path: string) =>
      document.paths[path]?.post?.parameters
        .filter((parameter) => parameter.in === "header")
        .map(({ name, required }) => [name, required]);
    expect(headersOf("/api/v1/transcoding_jobs/next")).toEqual([["Idempotency-Key", true]]);
    expect(headersOf("/api/v1/uploads/initiate")).toEqual([["Idempotency-Key", false]]);
    expect(document.paths["/api/v1/transcoding_jobs/{id}/heartbeat"]?.post?.security[0]).toEqual({
      workerToken: [],
      leaseToken: [],
    });
    expect(document.paths["/healthz"]?.get?.security).toEqual([]);
  });

  test("is held against every answer of these tests, which would tell of a field that it does not name", () => {
    const conforms = conformance(app.opened.routes);
    const answered = (status: number, body: unknown) =>
      conforms("GET", "/api/v1/assets", { status, body, text: "", headers: new Headers() });
    answered(200, []);
    answered(422, {});
    expect(() => answered(200, [{ id: 1 }])).toThrow();
    expect(() => answered(201, [])).toThrow();
    expect(() => answered(403, {})).toThrow();
    const health = (body: unknown) =>
      conforms("GET", "/healthz", { status: 200, body, text: "", headers: new Headers() });
    health({ status: "ok" });
    expect(() => health({ status: "ok", more: 1 })).toThrow();
  });
});

test("the page of the interface comes with all that it loads, and loads nothing from elsewhere", async () => {
  const page = await app.call("GET", "/docs");
  expect([page.status, page.headers.get("content-type")]).toEqual([200, "text/html; charset=utf-8"]);
  const named = [...page.text.matchAll(/(?:src|href)="([^"]+)"/g)].map((match) => match[1] as string);
  // The empty icon keeps browsers from asking for /favicon.ico.
  const parts = named.filter((part) => !part.startsWith("data:"));
  expect(parts).toHaveLength(3);
  for (const part of parts) {
    const address = new URL(part, "http://vodbox.test/docs");
    expect(address.host).toBe("vodbox.test");
    const answer = await app.call("GET", address.href);
    expect(answer.status, part).toBe(200);
    expect(answer.headers.get("content-type")).toMatch(part.endsWith(".css") ? /^text\/css/ : /^text\/javascript/);
    expect(answer.text.length).toBeGreaterThan(50);
  }
  const start = await app.call("GET", "/docs/start.js");
  const document = /url: "([^"]+)"/.exec(start.text)?.[1] as string;
  expect((await app.call("GET", new URL(document, "http://vodbox.test/docs").href)).body.openapi).toBe("3.0.3");
  expect(page.headers.get("content-security-policy")).toContain("default-src 'none'");
});

import { createConfig, lintFromString } from "@redocly/openapi-core";
import { Validator } from "@seriousme/openapi-schema-validator";
import { beforeAll, describe, expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import { conformance } from "#test/support/conform.ts";

type Operation = {
  operationId: string;
  summary?: string;
  parameters: { name: string; in: string; required: boolean; description?: string }[];
  requestBody?: { content: Record<string, { schema: unknown }> };
  responses: Record<string, { content?: Record<string, { schema: unknown }> }>;
  security: Record<string, unknown>[];
};
type Document = {
  openapi: string;
  info: { version: string };
  components: object;
  paths: Record<string, Record<string, Operation>>;
};

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
  test("is valid OpenAPI 3.0.3, version 1.0.0 of the API", async () => {
    expect([document.openapi, document.info.version]).toEqual(["3.0.3", "1.0.0"]);
    const result = await new Validator({ strict: false }).validate(structuredClone(document));
    expect(result.errors).toBe(undefined);
    expect(result.valid).toBe(true);
  });

  test("passes an independent linter, examples included", async () => {
    const config = await createConfig({ extends: ["recommended-strict"] });
    const problems = await lintFromString({ source: JSON.stringify(document), config });
    const told = problems.map(({ ruleId, message, location }) => `${ruleId} ${location[0]?.pointer} ${message}`);
    // A health check has no client errors.
    const known = told.filter((each) => /^operation-4xx-response #\/paths\/~1(healthz|readyz)\/get/.test(each));
    expect(known).toHaveLength(2);
    expect(told.filter((each) => !known.includes(each))).toEqual([]);
  });

  test("has an example of every body and every response, none of which is only a placeholder", () => {
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

  test("names each operation uniquely, and describes each", () => {
    const ids = operations().map(({ operation }) => operation.operationId);
    expect(new Set(ids).size).toBe(ids.length);
    for (const { name, path, operation } of operations()) {
      expect.soft(operation.operationId, name).toMatch(/^(?!(post|put|patch|head|options)[A-Z])[a-z][A-Za-z0-9]+$/);
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

  test("describes every parameter and every property", () => {
    const bare: string[] = [];
    const walk = (value: unknown, at: string, isMap = false): void => {
      if (typeof value !== "object" || value === null) return;
      for (const [name, inner] of Object.entries(value)) {
        if (isMap && !("description" in (inner as object))) bare.push(`${at}.${name}`);
        // An example may have a field of this name.
        if (name !== "example") walk(inner, `${at}/${name}`, name === "properties" && !isMap);
      }
    };
    walk(document.components, "components");
    for (const { name, operation } of operations()) {
      walk(operation, name);
      for (const parameter of operation.parameters) if (!parameter.description) bare.push(`${name} ${parameter.name}`);
    }
    expect(bare).toEqual([]);
  });

  test("describes a parameter as its schema does, also one that is converted", () => {
    const described = (path: string, name: string) =>
      document.paths[path]?.get?.parameters.find((one) => one.name === name)?.description;
    expect(described("/api/v1/webhooks", "limit")).toBe("1 to 500; without it, up to 1,000 records are returned");
    expect(described("/api/v1/analytics/now", "tenant_id")).toBe("Required with the admin token");
  });

  test("declares which headers a worker must send, and which a client may", () => {
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

  test("is checked against every response of these tests, including undeclared fields", () => {
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

test("the API reference page loads everything from this server, by relative URLs", async () => {
  const page = await app.call("GET", "/docs");
  expect([page.status, page.headers.get("content-type")]).toEqual([200, "text/html; charset=utf-8"]);
  const named = [...page.text.matchAll(/(?:src|href)="([^"]+)"/g)].map((match) => match[1] as string);
  // The empty icon keeps browsers from requesting /favicon.ico.
  const parts = named.filter((part) => !part.startsWith("data:"));
  const paths = parts.map((part) => part.replace(/\?v=\w{12}$/, ""));
  expect(paths).toEqual(["docs/start.js", "docs/scalar.js", "api/v1/openapi.json"]);
  for (const part of parts) {
    const answer = await app.call("GET", new URL(part, "http://vodbox.test/docs").href);
    expect(answer.status, part).toBe(200);
    expect(answer.headers.get("content-type")).toMatch(part.includes(".js?") ? /^text\/javascript/ : /json/);
    expect(answer.text.length).toBeGreaterThan(50);
    if (part.includes("?v=")) {
      expect(answer.headers.get("cache-control")).toContain("immutable");
      const stale = await app.call("GET", new URL(part.replace(/\w{12}$/, "0"), "http://vodbox.test/docs").href);
      expect(stale.headers.get("cache-control")).toBe("public, no-cache");
    }
  }
  expect(page.headers.get("content-security-policy")).toContain("default-src 'none'");
});

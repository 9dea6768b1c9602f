import { beforeAll, describe, expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import type { Answer, CallOptions } from "#test/support/client.ts";
import { expectError } from "#test/support/error.ts";
import { next, uploaded } from "#test/support/flow.ts";

/** Every route that takes JSON, with a valid body, and the faults of others. */
type Case = { path: string; method?: string; credentials: CallOptions; good: Record<string, unknown> };
type Wrong = [field: string, value: unknown, code: "parameter_missing" | "validation_failed"];

let app: TestApp;
let cases: Record<"initiate" | "complete" | "key" | "tenant" | "next" | "heartbeat" | "fail" | "finish" | "sign", Case>;

beforeAll(async () => {
  app = await testApp({ rate_limit_uploads: "100000/60" });
  const tenant = await app.tenant();
  const key = await app.key(tenant.id);
  const pending = await app.as(key).initiateUpload({ filename: "a.mp4", bytes_expected: 10 });
  await uploaded(app, key);
  const { body: contract } = await next(app);
  const lease = { worker: app.worker, lease: contract.lease.token };
  const job = `/api/v1/transcoding_jobs/${contract.job.id}`;
  cases = {
    initiate: {
      path: "/api/v1/uploads/initiate",
      credentials: { key },
      good: { filename: "a.mp4", bytes_expected: 10 },
    },
    complete: {
      path: `/api/v1/uploads/${pending.body.id}/complete`,
      credentials: { key },
      good: { bytes_received: 10 },
    },
    key: { path: "/api/v1/api_keys", credentials: { admin: app.admin }, good: { tenant_id: tenant.id } },
    tenant: {
      path: "/api/v1/admin/tenants",
      credentials: { admin: app.admin },
      good: { name: "N", slug: "never-made" },
    },
    next: {
      path: "/api/v1/transcoding_jobs/next",
      credentials: { worker: app.worker, headers: { "idempotency-key": "k" } },
      good: {},
    },
    heartbeat: { path: `${job}/heartbeat`, credentials: lease, good: { progress: 1 } },
    fail: { path: `${job}/fail`, credentials: lease, good: {} },
    finish: { path: `${job}/complete`, credentials: lease, good: {} },
    sign: { path: `${job}/artifacts`, credentials: lease, good: { paths: [`${contract.outputs.prefix}x`] } },
  };
  return app.close;
});

const send = ({ path, method = "POST", credentials }: Case, options: CallOptions): Promise<Answer> =>
  app.call(method, path, { ...credentials, ...options, headers: { ...credentials.headers, ...options.headers } });
const raw = (one: Case, text: string | Uint8Array<ArrayBuffer>, type = "application/json") =>
  send(one, { raw: text, headers: { "content-type": type } });
const unchanged = async (work: () => Promise<void>) => {
  const state = async () =>
    JSON.stringify(
      await Promise.all(
        ["/api/v1/tenants", "/api/v1/assets", "/api/v1/api_keys"].map(
          async (path) => (await app.call("GET", path, { admin: app.admin })).body,
        ),
      ),
    ).replaceAll(/"last_used_(at|address)":[^,]+/g, "");
  const before = await state();
  await app.newEvents();
  await work();
  expect(await state()).toBe(before);
  expect(await app.newEvents()).toEqual([]);
};

describe("a body", () => {
  test("that is not JSON, or not UTF-8, is 400", () =>
    unchanged(async () => {
      const notUtf8 = new Uint8Array([...Buffer.from('{"filename":"'), 0xff, 0xfe, ...Buffer.from('"}')]);
      for (const [name, one] of Object.entries(cases))
        for (const text of ["{", "nothing", '{"a":1}}', "{'a':1}", '{"a":1,}', "\0", notUtf8])
          expectError(await raw(one, text), 400, "invalid_json", `${name} ${text}`);
    }));

  test("that is not an object is 422 parameter_missing", () =>
    unchanged(async () => {
      for (const [name, one] of Object.entries(cases))
        for (const text of ["[]", "[{}]", "1", '"text"', "true", "null"])
          if (text !== "null") expectError(await raw(one, text), 422, "parameter_missing", `${name} ${text}`);
    }));

  test("of another media type is 415; JSON's own types are accepted", () =>
    unchanged(async () => {
      for (const [name, one] of Object.entries(cases))
        for (const type of [
          "text/plain",
          "application/x-www-form-urlencoded",
          "application/jsonp",
          "multipart/form-data",
        ])
          expectError(await raw(one, "{}", type), 415, "unsupported_media_type", `${name} ${type}`);
      for (const type of ["application/json; charset=utf-8", "application/problem+json", "APPLICATION/JSON"])
        expectError(await raw(cases.initiate, "{}", type), 422, "parameter_missing", type);
    }));

  test("that is too large is 413, whatever its content", () =>
    unchanged(async () => {
      const huge = `{"filename":"${"x".repeat(1 << 20)}"}`;
      for (const [name, one] of Object.entries(cases))
        expectError(await raw(one, huge), 413, "payload_too_large", name);
    }));

  test("that is deeply nested does no harm", async () => {
    for (const [open, close] of [
      ["[", "]"],
      ['{"a":', "}"],
    ] as const) {
      const deep = `${open.repeat(100_000)}1${close.repeat(100_000)}`;
      expectError(await raw(cases.initiate, `{"filename":${deep},"bytes_expected":1}`), 422, "parameter_missing");
      const ignored = await raw(cases.initiate, `{"filename":"a.mp4","bytes_expected":1,"unknown":${deep}}`);
      expect(ignored.status).toBe(201);
      expect((await raw(cases.next, `{"capabilities":{"x":${deep}}}`)).status).toBe(204);
      expect((await raw(cases.heartbeat, `{"unknown":${deep}}`)).status).toBe(200);
    }
  });

  test("that contains __proto__ or constructor changes nothing but itself", async () => {
    const text = '{"filename":"a.mp4","bytes_expected":1,"tags":{"__proto__":"x","constructor":"y"}}';
    const made = await raw(cases.initiate, text);
    expect([201, 422]).toContain(made.status);
    expect(({} as Record<string, unknown>).x).toBe(undefined);
    expect((await raw(cases.initiate, '{"__proto__":{"filename":"a.mp4","bytes_expected":1}}')).status).toBe(422);
  });
});

test("limits of texts count characters, as maxLength of the OpenAPI document does", async () => {
  const { good } = cases.initiate;
  for (const character of ["a", "é", "名", "😀"]) {
    const title = character.repeat(512);
    const made = await send(cases.initiate, { body: { ...good, title } });
    expect([character, made.status]).toEqual([character, 201]);
    expect((await send(cases.initiate, { body: { ...good, title: `${title}a` } })).status).toBe(422);
  }
  expect((await app.call("GET", "/api/v1/openapi.json")).text).toContain('"maxLength":512');
});

const wrong: Record<string, Wrong[]> = {
  initiate: [
    ["filename", undefined, "parameter_missing"],
    ["filename", null, "parameter_missing"],
    ["filename", 7, "parameter_missing"],
    ["filename", ["a"], "parameter_missing"],
    ["filename", "", "validation_failed"],
    ["filename", " \t", "validation_failed"],
    ["filename", "a\0.mp4", "validation_failed"],
    ["filename", "\ud800.mp4", "validation_failed"],
    ["filename", "x".repeat(501), "validation_failed"],
    ["bytes_expected", undefined, "parameter_missing"],
    ["bytes_expected", "10", "parameter_missing"],
    ["bytes_expected", null, "parameter_missing"],
    ["bytes_expected", -1, "validation_failed"],
    ["bytes_expected", 1.5, "validation_failed"],
    ["bytes_expected", 1e30, "validation_failed"],
    ["bytes_expected", 65 * 2 ** 30, "validation_failed"],
    ["title", "", "validation_failed"],
    ["title", "a\0b", "validation_failed"],
    ["title", "\udfff", "validation_failed"],
    ["title", 1, "validation_failed"],
    ["description", "a\0b", "validation_failed"],
    ["content_type", "video", "validation_failed"],
    ["content_type", "video/mp4\r\nx: y", "validation_failed"],
    ["playback_policy", "secret", "validation_failed"],
    ["playback_policy", 1, "validation_failed"],
    ["external_id", "123", "validation_failed"],
    ["external_id", "vid_mine", "validation_failed"],
    ["external_id", "a/b", "validation_failed"],
    ["external_id", "", "validation_failed"],
    ["source_width", 0, "validation_failed"],
    ["source_width", "640", "validation_failed"],
    ["sha256", "abc", "validation_failed"],
    ["tags", [], "validation_failed"],
    ["tags", { a: {} }, "validation_failed"],
    ["tags", { a: "x".repeat(1025) }, "validation_failed"],
    ["tags", { a: "x\0" }, "validation_failed"],
    ["tags", { a: "\ud800" }, "validation_failed"],
    ["tags", { "": 1 }, "validation_failed"],
    ["tags", Object.fromEntries(Array.from({ length: 101 }, (_, i) => [`k${i}`, 1])), "validation_failed"],
    ["captions", "en", "validation_failed"],
    ["captions", ["not a language"], "validation_failed"],
    ["tenant_id", "1", "validation_failed"],
    ["tenant_id", 1.5, "validation_failed"],
  ],
  complete: [
    ["bytes_received", undefined, "parameter_missing"],
    ["bytes_received", "10", "parameter_missing"],
    ["bytes_received", -1, "validation_failed"],
    ["bytes_received", 0.5, "validation_failed"],
  ],
  key: [
    ["tenant_id", undefined, "parameter_missing"],
    ["tenant_id", null, "parameter_missing"],
    ["tenant_id", "1", "parameter_missing"],
    ["tenant_id", 1.5, "validation_failed"],
    ["name", "", "validation_failed"],
    ["name", "a\0", "validation_failed"],
    ["name", 1, "validation_failed"],
    ["scopes", "assets:read", "validation_failed"],
    ["scopes", [], "validation_failed"],
    ["scopes", ["assets:everything"], "validation_failed"],
    ["scopes", [1], "validation_failed"],
    ["expires_at", "tomorrow", "validation_failed"],
    ["expires_at", "2020-01-01T00:00:00Z", "validation_failed"],
    ["expires_at", "2099-02-31T99:00:00Z", "validation_failed"],
    ["expires_at", 4_000_000_000, "validation_failed"],
  ],
  tenant: [
    ["name", undefined, "parameter_missing"],
    ["slug", undefined, "parameter_missing"],
    ["slug", "Not A Slug", "validation_failed"],
    ["slug", "-a", "validation_failed"],
    ["plan_name", "gold", "validation_failed"],
    ["default_playback_policy", "open", "validation_failed"],
  ],
  next: [
    ["worker_id", 1, "validation_failed"],
    ["worker_id", "a\0", "validation_failed"],
    ["capabilities", "all", "validation_failed"],
    ["wait_seconds", -1, "validation_failed"],
    ["wait_seconds", 21, "validation_failed"],
    ["wait_seconds", "5", "validation_failed"],
  ],
  heartbeat: [
    ["progress", -1, "validation_failed"],
    ["progress", 101, "validation_failed"],
    ["progress", "half", "validation_failed"],
    ["stage", 1, "validation_failed"],
    ["stage", "x".repeat(101), "validation_failed"],
  ],
  fail: [
    ["code", 1, "validation_failed"],
    ["message", "a\0", "validation_failed"],
    ["retryable", "yes", "validation_failed"],
    ["log_tail", "x".repeat(65_537), "validation_failed"],
  ],
  sign: [
    ["paths", undefined, "parameter_missing"],
    ["paths", "x", "parameter_missing"],
    ["paths", [], "validation_failed"],
    ["paths", ["../x"], "validation_failed"],
    ["paths", [""], "validation_failed"],
  ],
};

describe("a field", () => {
  test.for(Object.entries(wrong))("of %s that is missing or invalid is 422, and named", ([name, fields]) =>
    unchanged(async () => {
      const one = cases[name as keyof typeof cases];
      for (const [field, value, code] of fields) {
        const about = `${name}.${field} = ${JSON.stringify(value)?.slice(0, 60)}`;
        const answer = await send(one, { body: { ...one.good, [field]: value } });
        expectError(answer, 422, code, about);
        expect.soft(Object.keys(answer.body.details ?? {}).join(), about).toMatch(new RegExp(`^${field}\\b`));
      }
    }),
  );

  test("of a lease call is validated, and the lease continues", async () => {
    expect((await send(cases.heartbeat, { body: {} })).status).toBe(200);
  });
});

test("a malformed URL, or one with a malformed id, is 404", async () => {
  const { key } = cases.initiate.credentials;
  for (const path of [
    "/api/v1/uploads/abc",
    "/api/v1/uploads/0",
    "/api/v1/uploads/-1",
    "/api/v1/uploads/1.5",
    "/api/v1/uploads/1e3",
    "/api/v1/uploads/99999999999999999999",
    "/api/v1/uploads/%00",
    "/api/v1/uploads/%ff",
    "/api/v1/playback/",
    "/api/v1/nothing",
    "/api/v2/assets",
  ])
    expectError(await app.call("GET", path, { key: key as string }), 404, "not_found", path);
});

test("a time is parsed as intended or refused", async () => {
  const times = ["2099-02-31T00:00:00Z", "2099-01-01 00:00:00Z", "2099-01-01T00:00:00+05", "2099-01-01T00:00:00+0530"];
  for (const time of [
    ...times,
    "2099-01-01T00:00:00.123456789Z",
    "2099-12-31T23:59:60Z",
    "9999-12-31T23:59:59-23:59",
  ]) {
    const made = await send(cases.key, { body: { ...cases.key.good, expires_at: time } });
    if (made.status === 201) expect(made.body.expires_at, time).toMatch(/^2(098|099|100)-|^9999/);
    else expectError(made, 422, "validation_failed", time);
  }
  const meant = await send(cases.key, { body: { ...cases.key.good, expires_at: "2099-01-01T02:00:00+02:00" } });
  expect(meant.body.expires_at).toBe("2099-01-01T00:00:00.000Z");
});

test("the first fault is a sentence, all of them are in details", async () => {
  const answer = await send(cases.initiate, { body: { bytes_expected: -1, playback_policy: "x" } });
  expectError(answer, 422, "parameter_missing");
  expect(answer.body.details).toEqual({
    filename: ["is required"],
    bytes_expected: ["must not be negative"],
    playback_policy: ["must be public or signed"],
  });
});

test("no message contains what was sent", async () => {
  const long = "x".repeat(10_000);
  const claim = { ...cases.next.good, capabilities: { tasks: long, clips: null, joins: -1 }, wait_seconds: -1 };
  const answer = await send(cases.next, { body: claim });
  expectError(answer, 422, "validation_failed");
  expect(answer.body.details).toEqual({
    "capabilities.tasks": ["must be of the type number"],
    "capabilities.clips": ["must be of the type number"],
    wait_seconds: ["must be at least 0"],
  });
  const signed = await send(cases.sign, { body: { paths: [] } });
  expect(signed.body.details).toEqual({ paths: ["must have a length of at least 1"] });
});

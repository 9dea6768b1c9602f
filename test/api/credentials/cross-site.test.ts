import { beforeEach, expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import { expectError } from "#test/support/error.ts";
import { sessionFrom, signIn } from "#test/support/sessions.ts";

let app: TestApp;
let key: string;
beforeEach(async () => {
  app = await testApp();
  key = await app.key((await app.tenant()).id);
});

const path = "/api/v1/session";
const BASE = "http://vodbox.test";
const json = { "content-type": "application/json" };

/** Where a request comes from, by all that browsers say about it, and whether it may change something. */
const SITES: [name: string, headers: Record<string, string>, isOwn: boolean][] = [
  ["a program", {}, true],
  ["the same origin", { "sec-fetch-site": "same-origin", origin: BASE }, true],
  ["the user", { "sec-fetch-site": "none" }, true],
  ["a subdomain", { "sec-fetch-site": "same-site", origin: "http://other.vodbox.test" }, false],
  ["another site", { "sec-fetch-site": "cross-site", origin: "https://evil.example" }, false],
  ["another site that claims our origin", { "sec-fetch-site": "cross-site", origin: BASE }, false],
  ["an unknown relation", { "sec-fetch-site": "future" }, false],
  ["an older browser", { origin: BASE }, true],
  ["an older browser behind TLS", { origin: "https://video.example", host: "video.example" }, true],
  ["an older browser on another site", { origin: "https://evil.example" }, false],
  ["the same, with the host of this server", { origin: "https://evil.example", host: "vodbox.test" }, false],
  ["another port", { origin: "http://vodbox.test:81", host: "vodbox.test" }, false],
  ["a sandboxed frame", { origin: "null" }, false],
  ["no origin at all", { origin: "" }, false],
];

test.each(SITES)("%s", async (_, headers, isOwn) => {
  const begin = () => app.as({ headers }).createSession({ api_key: key });
  if (isOwn) expect((await begin()).status).toBe(201);
  else expectError(await begin(), 403, "cross_site");
  // A body that cannot be valid is not read before.
  if (!isOwn)
    expectError(await app.call("POST", path, { raw: "{", headers: { ...json, ...headers } }), 403, "cross_site");
  const { cookie, csrf } = await signIn(app, { api_key: key });
  for (const token of [csrf, "wrong"]) {
    const changed = await app.as({ headers: { cookie, "x-csrf-token": token, ...headers } }).deleteSession();
    if (!isOwn) expectError(changed, 403, "cross_site");
    else if (token === "wrong") expectError(changed, 401, "unauthorized");
    else expect(changed.status).toBe(204);
  }
  // What changes nothing is answered as before, and a key in a header needs no origin.
  const session = sessionFrom(await app.as().createSession({ api_key: key }));
  expect((await app.as({ headers: { cookie: session.cookie, ...headers } }).getSession()).status).toBe(200);
  const asKey = await app.as({ key, headers }).initiateUpload({ filename: "a.mp4", bytes_expected: 1 });
  expect(asKey.status).toBe(201);
});

test.each([
  ["text/plain", 415],
  ["application/x-www-form-urlencoded", 415],
  ["multipart/form-data; boundary=x", 415],
  ["application/jsonp", 415],
  ["application/vnd.api+json", 415],
  ["text/plain; application/json", 415],
  ["application/json", 201],
  ["Application/JSON; charset=utf-8", 201],
] as const)("the body of a sign-in as %s: %i", async (type, status) => {
  const answer = await app.call("POST", path, {
    raw: JSON.stringify({ api_key: key }),
    headers: { "content-type": type },
  });
  if (status === 201) expect(answer.status).toBe(201);
  else expectError(answer, 415, "unsupported_media_type");
});

test("a sign-in without a type is 415, also for the set-up", async () => {
  for (const [route, body] of [
    [path, { api_key: key }],
    ["/api/v1/setup", { code: "x" }],
  ] as const) {
    const raw = new Blob([JSON.stringify(body)]);
    expectError(await app.call("POST", route, { raw }), 415, "unsupported_media_type");
  }
});

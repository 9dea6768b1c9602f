import { expect, test } from "vitest";
import { testApp } from "#test/support/app.ts";
import { expectError } from "#test/support/error.ts";

const path = "/api/v1/features";

test("shows which services are configured", async () => {
  const plain = await testApp();
  const key = await plain.key((await plain.tenant()).id, ["assets:read"]);
  expect((await plain.call("GET", path, { key })).body).toEqual({ translation: false, captions: false });
  expectError(await plain.call("GET", path), 401, "unauthorized");
  const full = await testApp({ translate: "libretranslate", translate_url: "http://127.0.0.1:1/" });
  expect((await full.call("GET", path, { admin: full.admin })).body).toEqual({ translation: true, captions: false });
});

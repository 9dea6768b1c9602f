import { expect, test } from "vitest";
import { testApp } from "#test/support/app.ts";
import { expectError } from "#test/support/error.ts";

test("shows which services are configured", async () => {
  const plain = await testApp();
  const key = await plain.key((await plain.tenant()).id, ["assets:read"]);
  expect((await plain.as(key).getFeatures()).body).toEqual({ translation: false, captions: false });
  expectError(await plain.as().getFeatures(), 401, "unauthorized");
  const full = await testApp({ translate: "libretranslate", translate_url: "http://127.0.0.1:1/" });
  expect((await full.as({ admin: full.admin }).getFeatures()).body).toEqual({ translation: true, captions: false });
});

import { expect, test } from "vitest";
import { type SignedUrl, signUrl, verifyUrl } from "#storage/objects/signed-url.ts";

const signing = { secret: "a secret of the tests", baseUrl: "https://video.example/base" };
const expiresAt = new Date("2026-11-20T12:00:00Z");
const before = new Date("2026-11-20T11:59:59Z");
const get: SignedUrl = {
  method: "GET",
  key: "tenants/1/a b/100%/日本?#&=.mp4",
  expiresAt,
  filename: 'my "film" & more.mp4',
  contentType: "video/mp4",
};
const put: SignedUrl = { method: "PUT", key: "tenants/1/source", expiresAt, maxBytes: 1000 };

const verify = (url: string, method = "GET", now = before) => verifyUrl(signing, { url, method, now });
const altered = { ok: false, reason: "altered" };

test("a URL allows what was signed, as a whole URL, as a request target, and behind a proxy that removes the base path", () => {
  for (const address of [get, put]) {
    const url = signUrl(signing, address);
    expect(url.startsWith("https://video.example/base/objects/tenants/1/")).toBe(true);
    for (const target of [url, url.replace("https://video.example", ""), url.replace(signing.baseUrl, "")]) {
      expect(verify(target, address.method)).toEqual({ ok: true, address: { ...empty, ...address } });
    }
  }
  expect(verify(signUrl(signing, get), "HEAD").ok).toBe(true);
});

const empty = { maxBytes: undefined, filename: undefined, contentType: undefined };

test("it expires", () => {
  const url = signUrl(signing, get);
  expect(verify(url, "GET", expiresAt)).toEqual({ ok: false, reason: "expired" });
  expect(verify(url, "GET", new Date(expiresAt.getTime() - 1)).ok).toBe(true);
  expect(verify(url.replace(/sig=.*/, "sig=x"), "GET", expiresAt)).toEqual(altered);
});

test("nothing in it can be changed, added, duplicated or omitted", () => {
  const url = signUrl(signing, put);
  const forged = [
    url.replace("tenants/1", "tenants/2"),
    url.replace("max_bytes=1000", "max_bytes=9999"),
    url.replace("max_bytes=1000&", ""),
    url.replace(/expires=\d+/, "expires=9999999999"),
    url.replace("method=PUT", "method=GET"),
    `${url}&extra=1`,
    `${url}&filename=x`,
    `${url}&max_bytes=1000`,
    url.replace(/sig=.*/, "sig="),
    url.replace(/&sig=.*/, ""),
    `${url}=`,
    `${url}&${url.slice(url.indexOf("sig="))}`,
    url.replace("/objects/", "/objects/x/../"),
    url.replace("tenants", "%E0%A4%A"),
    url.replace("/objects/", "/other/"),
    `${url}?a`,
  ];
  expect(verify(url, "PUT").ok).toBe(true);
  for (const one of forged) expect([one, verify(one, "PUT")]).toEqual([one, altered]);
  expect(verify(url, "GET")).toEqual(altered);
  expect(verify(url, "DELETE")).toEqual(altered);
  expect(verifyUrl({ ...signing, secret: "another" }, { url, method: "PUT", now: before })).toEqual(altered);
});

test("no character of the signature can be changed", () => {
  const url = signUrl(signing, put);
  const start = url.indexOf("sig=") + 4;
  for (let i = start; i < url.length; i++) {
    const other = url[i] === "A" ? "B" : "A";
    expect(verify(url.slice(0, i) + other + url.slice(i + 1), "PUT")).toEqual(altered);
  }
});

import { expect, test } from "vitest";
import { sha256, signer } from "#storage/objects/s3/sigv4.ts";

// The examples of "Authenticating Requests (AWS Signature Version 4)" in the API reference of Amazon S3.
const { sign, presign } = signer({
  accessKeyId: "AKIAIOSFODNN7EXAMPLE",
  secretAccessKey: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
  region: "us-east-1",
});
const now = new Date("2013-05-24T00:00:00Z");
const host = "examplebucket.s3.amazonaws.com";
const get = { method: "GET", host, now };
const empty = sha256("");

test.each([
  [
    "an object",
    { ...get, path: "/test.txt", headers: { range: "bytes=0-9" } },
    empty,
    "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
  ],
  [
    "a subresource",
    { ...get, path: "/", query: { lifecycle: "" } },
    empty,
    "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543",
  ],
  [
    "a list",
    { ...get, path: "/", query: { "max-keys": "2", prefix: "J" } },
    empty,
    "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
  ],
  [
    "a put",
    {
      ...get,
      method: "PUT",
      path: "/test%24file.text",
      headers: { date: "Fri, 24 May 2013 00:00:00 GMT", "x-amz-storage-class": "REDUCED_REDUNDANCY" },
    },
    sha256("Welcome to Amazon S3."),
    "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd",
  ],
])("the headers of %s", (_, request, payload, signature) => {
  expect(sign(request, payload).authorization?.split("Signature=")[1]).toBe(signature);
});

test("a presigned URL", () => {
  const { query } = presign({ ...get, path: "/test.txt" }, new Date("2013-05-25T00:00:00Z"));
  expect(query).toContain("X-Amz-Expires=86400");
  expect(query.split("X-Amz-Signature=")[1]).toBe("aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404");
});

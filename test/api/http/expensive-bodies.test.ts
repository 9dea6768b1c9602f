import { beforeAll, describe, expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import { leased, tinyAsset } from "#test/support/batches.ts";

let app: TestApp;
let key: string;
let tenantId: number;
beforeAll(async () => {
  app = await testApp();
  tenantId = (await app.tenant()).id;
  key = await app.key(tenantId);
});

const many = (count: number, item: unknown) => Array.from({ length: count }, () => item);
const keys = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, n) => [`k${n}`, "v"]));
const PADDING = "x".repeat(70_000);

/** Bodies that are refused without validating all of their values: one fault is reported. */
const REFUSED: [name: string, raw: () => string, field: string, message: RegExp][] = [
  ["an object of many keys", () => JSON.stringify({ x: PADDING, y: keys(2001) }), "body", /more than 2000 keys/],
  [
    "many keys below many levels",
    () => `${"[".repeat(150)}${JSON.stringify([PADDING, keys(2001)])}${"]".repeat(150)}`,
    "body",
    /more than 2000 keys/,
  ],
  ["levels without end", () => "[".repeat(900_000), "body", /more than 150000 arrays and objects/],
  [
    "small objects without end",
    () => `{"channel":"a","captions":[${"{},".repeat(200_000)}1]}`,
    "body",
    /more than 150000 arrays and objects/,
  ],
  ["many keys below an array", () => JSON.stringify([PADDING, [keys(2001)]]), "body", /more than 2000 keys/],
  ["many wrong items", () => JSON.stringify({ channel: "a", captions: ["en", ...many(15, null)] }), "captions.1", /.+/],
  ["too many items", () => JSON.stringify({ channel: "a", captions: many(5000, "en") }), "captions", /at most 20/],
  [
    "too many wrong items",
    () => JSON.stringify({ channel: "a", captions: many(5000, null) }),
    "captions",
    /at most 20/,
  ],
];

describe("a body that is expensive to validate", () => {
  test.each(REFUSED)("%s", async (_, raw, field, message) => {
    const headers = { "content-type": "application/json" };
    const answer = await app.call("POST", "/api/v1/live/channels", { key, raw: raw(), headers });
    expect([answer.status, answer.body.code], answer.text.slice(0, 500)).toEqual([422, "validation_failed"]);
    expect(answer.body.details[field]?.[0], answer.text.slice(0, 500)).toMatch(message);
    expect(answer.text.length).toBeLessThan(2000);
  });

  test("a large body within the limits is accepted", async () => {
    const text = `{"[:${'\\"{'.repeat(30_000)}`;
    const nested = JSON.parse(`${"[".repeat(95)}1${"]".repeat(95)}`);
    const body = { channel: "large", ignored: text, nested, map: keys(2000), maps: many(50, keys(100)) };
    const answer = await app.as(key).createChannel(body);
    expect([answer.status, answer.text]).toEqual([201, answer.text]);
  });

  test("all faults of a small body are reported", async () => {
    const body = { channel: "", captions: [null], dvr_seconds: "x" };
    const { body: answer } = await app.call("POST", "/api/v1/live/channels", { key, body });
    expect(Object.keys(answer.details).sort()).toEqual(["captions.0", "channel", "dvr_seconds"]);
  });

  test.each(["warnings", "subtitles", "tracks"])("%s of a manifest", async (name) => {
    const batch = await leased(app, key);
    for (const items of [many(5000, 1), many(5000, {})]) {
      const { status, body } = await batch.preview({ assets: [tinyAsset("", { [name]: items })] });
      expect([status, body.valid, body.errors.length]).toEqual([200, false, 1]);
      expect(body.errors[0].path).toBe(`assets[0].${name}`);
    }
  });
});

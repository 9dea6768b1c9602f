import * as v from "valibot";
import { beforeAll, describe, expect, test } from "vitest";
import { decodeKey, encodeKey } from "#platform/http/paging.ts";
import { type TestApp, testApp } from "#test/support/app.ts";
import { expectError } from "#test/support/error.ts";
import { uploaded } from "#test/support/flow.ts";
import { fc } from "#test/support/property.ts";
import { RESERVED_TAGS } from "#test/support/reserved-tags.ts";

let app: TestApp;
let key: string;
beforeAll(async () => {
  app = await testApp({ rate_limit_uploads: "100000/60" });
  key = await app.key((await app.tenant()).id);
  return app.close;
});

/** Names and texts of people and programs, in any script, without characters that are refused. */
const words = (maxLength: number) =>
  fc.string({ unit: "grapheme", minLength: 1, maxLength }).filter((text) => text.trim() !== "" && !text.includes("\0"));
const name = words(20).filter((text) => text.length <= 64 && !RESERVED_TAGS.includes(text));
const value = fc.oneof(
  fc.string({ unit: "grapheme", maxLength: 50 }).filter((text) => !text.includes("\0")),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map((number) => (Object.is(number, -0) ? 0 : number)),
  fc.boolean(),
);

describe("tags", () => {
  test("after any changes equal those of a map", async () => {
    // Few names, so that they recur.
    const few = fc.constantFrom("a", "ä", "a.b", "x y", "%", "0", "toString");
    const merge = fc.record({
      merge: fc.dictionary(fc.oneof(few, name), fc.option(value), { maxKeys: 5, noNullPrototype: true }),
    });
    // A dot is not a valid path segment in a URL (RFC 3986, 5.2.4), however it is encoded; null removes such a tag.
    const remove = fc.record({ remove: fc.oneof(few, name).filter((tag) => tag !== "." && tag !== "..") });
    await fc.assert(
      fc.asyncProperty(fc.array(fc.oneof(merge, remove), { maxLength: 8 }), async (steps) => {
        const { asset } = await uploaded(app, key);
        const model = new Map<string, unknown>();
        for (const step of steps) {
          let answer: { status: number; body: unknown };
          if ("merge" in step) {
            for (const [tag, to] of Object.entries(step.merge)) to === null ? model.delete(tag) : model.set(tag, to);
            answer = await app.as(key).updateTags(asset.id, step.merge);
          } else {
            model.delete(step.remove);
            answer = await app.as(key).deleteTag(asset.id, step.remove);
          }
          expect([answer.status, answer.body]).toEqual([200, Object.fromEntries(model)]);
        }
        const stored = await app.as(key).getAsset(asset.id);
        expect(stored.body.tags).toEqual(Object.fromEntries(model));
      }),
      { numRuns: 60 },
    );
  });
});

test.each(RESERVED_TAGS)("a tag named %s is refused, not dropped", async (reserved) => {
  const { asset } = await uploaded(app, key, { tags: { kept: 1 } });
  const headers = { "content-type": "application/json" };
  const raw = `{"other":2,"${reserved}":"x"}`;
  const answer = await app.as({ key, headers }).unchecked.updateTags(asset.id, raw);
  expectError(answer, 422, "validation_failed");
  expect((await app.as(key).getAsset(asset.id)).body.tags).toEqual({ kept: 1 });
});

describe("cursors", () => {
  test("walk every list once from end to end, with any page size", async () => {
    const owner = await app.tenant();
    const mine = await app.key(owner.id);
    const { asset } = await uploaded(app, mine);
    let slugs = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.record({ position: fc.integer({ min: -3, max: 3 }), name: words(12) }), { maxLength: 12 }),
        async (records) => {
          for (const [index, { position, name: given }] of records.entries()) {
            const slug = `c-${++slugs}`;
            await app.as(mine).createCollection({ tenant_id: owner.id, collection: { name: given, slug, position } });
            const cues = [{ start_ms: index, payload: {} }];
            await app.as(mine).setTrackByPut(asset.id, { kind: "scene", name: given, position, cues });
          }
        },
      ),
      { numRuns: 5 },
    );
    const lists = ["collections", `assets/${asset.id}/tracks`, "assets", "api_keys", "transcoding_jobs", "tenants"];
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...lists), fc.integer({ min: 1, max: 9 }), async (list, limit) => {
        const whole = (await app.call("GET", `/api/v1/${list}`, { key: mine })).body;
        const walked: unknown[] = [];
        let next: string | undefined = `/api/v1/${list}?limit=${limit}`;
        while (next) {
          const page = await app.call("GET", next, { key: mine });
          expect(page.body.length).toBeLessThanOrEqual(limit);
          walked.push(...page.body);
          next = /<(.+)>; rel="next"/.exec(page.headers.get("link") ?? "")?.[1];
        }
        expect(walked).toEqual(whole);
      }),
      { numRuns: 40 },
    );
  });

  test("that no list returned are refused", async () => {
    const lists = ["assets", "collections", "api_keys", "transcoding_jobs", "tenants"];
    const junk = fc.oneof(
      fc.string({ unit: "binary", maxLength: 40 }),
      fc.json({ maxDepth: 2 }).map((json) => Buffer.from(json).toString("base64url")),
      fc.string({ maxLength: 20 }).map((text) => Buffer.from(`id:${text}`).toString("base64url")),
    );
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...lists), junk, async (list, cursor) => {
        const query = new URLSearchParams({ cursor });
        const { status, body } = await app.call("GET", `/api/v1/${list}?${query}`, { key });
        if (status === 200) expect(Array.isArray(body)).toBe(true);
        else expect([status, body.code]).toEqual([422, "validation_failed"]);
      }),
      { numRuns: 300 },
    );
  });

  test("contain the columns of the order, whatever their values", () => {
    const schema = v.strictTuple([v.number(), v.string()]);
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), fc.string({ unit: "binary" }), (n, text) => {
        const number = Object.is(n, -0) ? 0 : n;
        expect(decodeKey(encodeKey([number, text]), schema)).toEqual([number, text]);
      }),
    );
  });
});

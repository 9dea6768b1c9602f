import * as v from "valibot";
import { expect, expectTypeOf, test } from "vitest";
import { toColumns, toRecord } from "#platform/http/records.ts";
import { NullableTime, Time } from "#protocol/fields.ts";

const Video = v.pipe(
  v.object({
    id: v.number(),
    frame_rate: v.nullable(v.number()),
    hls_url: v.string(),
    ready_at: v.pipe(NullableTime, v.description("Null: not ready")),
    created_at: Time,
    warnings: v.optional(v.array(v.string())),
  }),
  v.title("Video"),
);
const row = { id: 7, frameRate: 25, readyAt: null, createdAt: 0, passwordHash: "secret" };

test("a record has the fields of its schema in their order, from the columns or as given", () => {
  const record = toRecord(Video, row, { hls_url: "https://video.test/7" });
  expect(JSON.stringify(record)).toBe(
    '{"id":7,"frame_rate":25,"hls_url":"https://video.test/7","ready_at":null,"created_at":"1970-01-01T00:00:00.000Z"}',
  );
  expect(v.parse(Video, record)).toEqual(record);
  expect(toRecord(Video, row, { hls_url: "", warnings: ["late"] }).warnings).toEqual(["late"]);
  expectTypeOf(record).toEqualTypeOf<{
    [Name in keyof v.InferInput<typeof Video>]: v.InferInput<typeof Video>[Name];
  }>();
});

test("the type checker finds fields without a column, and columns of another type", () => {
  // @ts-expect-error `hls_url` is neither a column nor given
  expect(toRecord(Video, row).hls_url).toBeUndefined();
  // @ts-expect-error a time is stored in milliseconds
  expect(() => toRecord(Video, { ...row, createdAt: "today" }, { hls_url: "" })).toThrow(RangeError);
});

test("what a body has becomes columns; null is a value, and undefined none", () => {
  const columns = toColumns({ low_latency: true, starts_at: null, name: undefined });
  expect(columns).toEqual({ lowLatency: true, startsAt: null });
  expect(Object.keys(columns)).not.toContain("name");
});

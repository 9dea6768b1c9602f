import Sqlite from "libsql";
import { describe, expect, test } from "vitest";
import {
  assetPrefix,
  attemptPrefix,
  batchesPrefix,
  batchPrefix,
  batchPrefixSql,
  endOfPrefix,
  extensionOf,
  imagesPrefix,
  imageVersionPrefix,
  isBelow,
  isDeliveredPrefix,
  movedKey,
  newDeliveredPrefix,
  newKeyName,
  newPosterKey,
  newProbeKey,
  newSourceKey,
  newSubtitleKey,
  ownerOf,
  type ParsedKey,
  PROBE,
  parseKey,
  prefixesOf,
  segmentAt,
  splitFirst,
  tenantPrefix,
  trashPrefix,
} from "#model/object-keys.ts";
import { checkKey } from "#storage/objects/keys.ts";
import { fc } from "#test/support/property.ts";

const NAME = "AbCdEfGhIjKlMnOpQrStUv09";

describe("keys of the released versions", () => {
  const known: [key: string, parsed: ParsedKey][] = [
    [`tenants/7/sources/${NAME}`, { kind: "source", tenantId: 7, name: NAME }],
    [`tenants/7/sources/${NAME}.mp4`, { kind: "source", tenantId: 7, name: NAME, extension: ".mp4" }],
    [
      "tenants/7/assets/42/3-9/720p/1.m4s",
      { kind: "attempt", tenantId: 7, assetId: 42, jobId: 3, attemptId: 9, path: "720p/1.m4s" },
    ],
    [`tenants/7/assets/42/subtitles/${NAME}.vtt`, { kind: "subtitle", tenantId: 7, assetId: 42, name: NAME }],
    [`tenants/7/assets/42/poster/${NAME}.jpg`, { kind: "poster", tenantId: 7, assetId: 42, name: NAME }],
    [
      "tenants/7/assets/42/pictures/0123456789abcdef/t-1.jpg",
      { kind: "image", tenantId: 7, assetId: 42, version: "0123456789abcdef", file: "t-1.jpg" },
    ],
    [
      `tenants/7/delivered/${NAME}/media/a b.m3u8`,
      { kind: "delivered", tenantId: 7, folder: NAME, path: "media/a b.m3u8" },
    ],
    [`tenants/7/ingest/${NAME}/film\u2028.mp4`, { kind: "batch", tenantId: 7, folder: NAME, path: "film\u2028.mp4" }],
    ["trash/2026-05-04/tenants/7/x", { kind: "trash", day: "2026-05-04", key: "tenants/7/x" }],
    ["vodbox-check", { kind: "probe" }],
    ["vodbox-check-0123456789ab", { kind: "probe" }],
  ];
  test.each(known)("%s", (key, parsed) => {
    expect(parseKey(key)).toEqual(parsed);
    expect(() => checkKey(key)).not.toThrow();
  });
});

describe("prefixes", () => {
  test("have the forms of the released versions", () => {
    expect([
      tenantPrefix(7),
      assetPrefix({ tenantId: 7, id: 42 }),
      attemptPrefix({ tenantId: 7, assetId: 42, id: 3 }, 9),
      imagesPrefix({ tenantId: 7, id: 42 }),
      imageVersionPrefix({ tenantId: 7, id: 42 }, "0123456789abcdef"),
      batchesPrefix(7),
      batchPrefix({ tenantId: 7, folder: NAME }),
      trashPrefix("2026-05-04"),
    ]).toEqual([
      "tenants/7/",
      "tenants/7/assets/42/",
      "tenants/7/assets/42/3-9/",
      "tenants/7/assets/42/pictures/",
      "tenants/7/assets/42/pictures/0123456789abcdef/",
      "tenants/7/ingest/",
      `tenants/7/ingest/${NAME}/`,
      "trash/2026-05-04/",
    ]);
  });

  test("of a batch are the same in SQL", () => {
    const database = new Sqlite(":memory:");
    const row = database
      .prepare(`SELECT ${batchPrefixSql("tenant", "folder")} AS prefix FROM (SELECT 7 AS tenant, ? AS folder)`)
      .get([NAME]);
    database.close();
    expect(row).toMatchObject({ prefix: batchPrefix({ tenantId: 7, folder: NAME }) });
  });

  test("of delivered media belong to one tenant", () => {
    const prefix = newDeliveredPrefix(7);
    expect(prefix).toMatch(/^tenants\/7\/delivered\/[A-Za-z0-9]{24}\/$/);
    expect(isDeliveredPrefix(prefix, 7)).toBe(true);
    expect(isDeliveredPrefix(prefix, 77)).toBe(false);
    for (const other of [`${prefix}x/`, prefix.slice(0, -1), `x${prefix}`, `tenants/7/ingest/${NAME}/`, ""])
      expect(isDeliveredPrefix(other, 7), other).toBe(false);
  });
});

const id = fc.integer({ min: 0, max: 10 ** 15 - 1 });
const segment = fc
  .string({ unit: "grapheme", minLength: 1, maxLength: 20 })
  .filter((text) => text.isWellFormed() && !/[/\p{Cc}]/u.test(text) && text !== "." && text !== "..");
const path = fc.array(segment, { minLength: 1, maxLength: 4 }).map((segments) => segments.join("/"));
const version = fc.stringMatching(/^[0-9a-f]{16}$/);
const day = fc.stringMatching(/^\d{4}-\d{2}-\d{2}$/);
const filename = fc.oneof(fc.string({ unit: "grapheme" }), fc.stringMatching(/^[a-z]{1,9}\.[A-Za-z0-9]{0,10}$/));

/** Every builder of a key, and what its key is parsed to. */
const built: fc.Arbitrary<[key: string, parsed: object]> = fc.oneof(
  fc.tuple(id, filename).map(([tenantId, name]) => {
    const extension = extensionOf(name);
    return [newSourceKey(tenantId, name), { kind: "source", tenantId, ...(extension && { extension }) }] as const;
  }),
  fc.tuple(id, id, id, id, path).map(([tenantId, assetId, jobId, attemptId, path]) => {
    const key = attemptPrefix({ tenantId, assetId, id: jobId }, attemptId) + path;
    return [key, { kind: "attempt", tenantId, assetId, jobId, attemptId, path }] as const;
  }),
  fc.tuple(id, id).map(([tenantId, assetId]) => {
    const key = newSubtitleKey(assetPrefix({ tenantId, id: assetId }));
    return [key, { kind: "subtitle", tenantId, assetId }] as const;
  }),
  fc.tuple(id, id).map(([tenantId, assetId]) => {
    return [newPosterKey({ tenantId, id: assetId }), { kind: "poster", tenantId, assetId }] as const;
  }),
  fc.tuple(id, id, version, segment).map(([tenantId, assetId, version, file]) => {
    const key = imageVersionPrefix({ tenantId, id: assetId }, version) + file;
    return [key, { kind: "image", tenantId, assetId, version, file }] as const;
  }),
  fc.tuple(id, path).map(([tenantId, path]) => {
    return [newDeliveredPrefix(tenantId) + path, { kind: "delivered", tenantId, path }] as const;
  }),
  id.map((tenantId) => [newSubtitleKey(newDeliveredPrefix(tenantId)), { kind: "delivered", tenantId }] as const),
  fc.tuple(id, path).map(([tenantId, path]) => {
    const folder = newKeyName();
    return [batchPrefix({ tenantId, folder }) + path, { kind: "batch", tenantId, folder, path }] as const;
  }),
  fc.tuple(day, path).map(([day, key]) => [trashPrefix(day) + key, { kind: "trash", day, key }] as const),
  fc.constantFrom(PROBE, newProbeKey()).map((key) => [key, { kind: "probe" }] as const),
) as fc.Arbitrary<[string, object]>;

describe("parseKey", () => {
  test("returns what a key was built from", () => {
    fc.assert(
      fc.property(built, ([key, parsed]) => {
        expect(parseKey(key)).toMatchObject(parsed);
        expect(ownerOf(key)?.tenantId).toBe("tenantId" in parsed ? parsed.tenantId : undefined);
      }),
      { numRuns: 3000 },
    );
  });

  test("is null for a key with a prefix, and for one inside another key", () => {
    fc.assert(
      fc.property(built, fc.constantFrom("x", "/", "tenants/", "\n"), ([key], prefix) => {
        expect(parseKey(prefix + key)).toBeNull();
      }),
      { numRuns: 1000 },
    );
  });

  test.each([
    "",
    "tenants/",
    "tenants/7/",
    "tenants/7/film.mp4",
    "tenants/7/sources/film.mp4",
    `tenants/7/sources/${NAME}.MP4`,
    `tenants/7/sources/${NAME}.extension9`,
    `tenants/7/sources/${NAME}/x`,
    `tenants/7/sources/${NAME}x`,
    `tenants/07/sources/${NAME}`,
    `tenants/-7/sources/${NAME}`,
    `tenants/x/sources/${NAME}`,
    `tenants/1234567890123456/sources/${NAME}`,
    "tenants/7/assets/42/master.m3u8",
    "tenants/7/assets/42/3-9",
    "tenants/7/assets/42/3-9/",
    "tenants/7/assets/42/3-09/x",
    "tenants/7/assets/42/3-9/a\nb",
    `tenants/7/assets/42/subtitles/${NAME}.srt`,
    `tenants/7/assets/42/subtitles/x/${NAME}.vtt`,
    "tenants/7/assets/42/pictures/0123456789ABCDEF/t.jpg",
    "tenants/7/assets/42/pictures/0123456789abcdef/a/t.jpg",
    `tenants/7/delivered/${NAME}/`,
    `tenants/7/delivered/${NAME.slice(1)}/x`,
    `tenants/7/ingest/${NAME}`,
    `tenants/7/ingest/${NAME}-/x`,
    "tenants/7/other/x",
    "trash/",
    "trash/today/x",
    "vodbox-check-",
    "vodbox-check-0123456789AB",
    "vodbox-checks",
    "vodbox-check/x",
    "backup.tar",
  ])("is null for the foreign key %j", (key) => {
    expect(parseKey(key)).toBeNull();
  });
});

describe("ownerOf", () => {
  test.each([
    ["tenants/7/film.mp4", { tenantId: 7 }],
    ["tenants/7/", { tenantId: 7 }],
    ["tenants/7/sources", { tenantId: 7 }],
    ["tenants/7/sources/film.mp4", { tenantId: 7, area: "sources" }],
    ["tenants/7/assets/film.mp4", { tenantId: 7, area: "assets" }],
    ["tenants/7/delivered/film/1.m4s", { tenantId: 7, area: "delivered" }],
    ["tenants/7/ingest/", { tenantId: 7, area: "ingest" }],
  ])("finds the tenant of %s", (key, owner) => {
    expect(ownerOf(key)).toEqual(owner);
  });

  test.each(["", "tenants/", "tenants/7", "tenants/07/x", "/tenants/7/x", "trash/2026-05-04/tenants/7/x"])(
    "is null for %j",
    (key) => {
      expect(ownerOf(key)).toBeNull();
    },
  );
});

describe("keys and paths taken apart", () => {
  test("a key is below its prefix, and moves to the same path below another one", () => {
    expect(isBelow("tenants/1/", "tenants/1/a/b")).toBe(true);
    expect(isBelow("tenants/1/", "tenants/10/a/b")).toBe(false);
    expect(movedKey("a/b/c", "a/", "x/y/")).toBe("x/y/b/c");
    expect(movedKey("ab/c", "a/", "x/")).toBe("ab/c");
  });

  test("the prefixes of a key are those that it is below, the shortest first", () => {
    expect([...prefixesOf("a/b/c")]).toEqual(["a/", "a/b/"]);
    expect([...prefixesOf("a/b/")]).toEqual(["a/", "a/b/"]);
    expect([...prefixesOf("a")]).toEqual([]);
  });

  test("the end of a prefix is after all of its keys, and before the next prefix", () => {
    const end = endOfPrefix("a/b/");
    expect(["a/b/", "a/b/\u{10ffff}", "a/b/~"].every((key) => key < end)).toBe(true);
    expect("a/b0" >= end && "a/ba/" >= end).toBe(true);
  });

  test("the first folder of a path", () => {
    expect(splitFirst("a/b/c")).toEqual({ folder: "a", path: "b/c" });
    expect(splitFirst("/b")).toEqual({ folder: "", path: "b" });
    expect(splitFirst("b")).toBeNull();
  });

  test.each([
    ["1080p/00001.m4s", { rendition: "1080p", number: 1 }],
    ["audio-2/12345678.m4s", { rendition: "audio-2", number: 12_345_678 }],
    ["1080p/0001.m4s", null],
    ["1080p/init.mp4", null],
    ["a/1080p/00001.m4s", null],
    ["../00001.m4s", null],
  ])("the segment at %s", (path, segment) => {
    expect(segmentAt(path)).toEqual(segment);
  });
});

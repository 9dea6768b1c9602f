import { describe, expect, test } from "vitest";
import { tagOf } from "#cli/import/existing.ts";
import { uploadFields } from "#cli/import/fields.ts";
import { time } from "#cli/import/json.ts";
import { pagesOf } from "#cli/import/paging.ts";
import { forEachBounded, planOf, videosOf } from "#cli/import/plan.ts";
import { redirects } from "#cli/import/redirects.ts";
import { type Listed, type Media, plainItem } from "#cli/import/source.ts";
import { type TreeFile, type TreeItem, videosIn } from "#cli/import/tree/group.ts";
import { loadTreeItem } from "#cli/import/tree/load.ts";
import { metadataOfJson, metadataOfNfo } from "#cli/import/tree/metadata.ts";
import { differences } from "#cli/import/verify.ts";

const listed = (id: string): Listed => ({ id, title: id, seconds: 1, bytes: 2, data: null });
const media = { kind: "local", path: "/x", bytes: 1 } as const;

describe("a list", () => {
  const never = () => expect.fail("ended");
  test.each([
    ["repeats a page", async () => ({ videos: [listed("a")], next: "same" })],
    ["has empty pages", async (cursor: string | null) => ({ videos: [], next: `${Number(cursor ?? 0) + 1}` })],
    [
      "repeats its videos",
      async (cursor: string | null) => ({ videos: [listed("a")], next: `${Number(cursor ?? 0) + 1}` }),
    ],
  ])("that %s without end is left", async (_, load) => {
    await expect(Array.fromAsync(pagesOf(load)).then(never)).rejects.toThrow(/does not end/);
  });

  test("counts a video that is listed twice once, and reads no further ahead than it works", async () => {
    let read = 0;
    const source = {
      location: "x",
      client: null,
      load: never,
      async *list() {
        for (let at = 0; at < 10_000; at++) {
          read++;
          yield listed(at === 9999 ? "0" : String(at));
        }
      },
    };
    expect(await planOf(source as any)).toEqual({
      videos: 9999,
      seconds: 9999,
      bytes: 19_998,
      unknownBytes: 0,
      duplicates: ["0"],
    });
    read = 0;
    let most = 0;
    let done = 0;
    await forEachBounded(videosOf(source as any), 3, async () => {
      await Promise.resolve();
      done++;
      most = Math.max(most, read - done);
    });
    expect([done, most]).toEqual([9999, expect.toSatisfy((ahead: number) => ahead <= 4)]);
  });
});

test("texts beyond the API's limits are shortened and reported", () => {
  const item = plainItem({
    title: "\ud800".repeat(501),
    filename: "a.mp4",
    media,
    description: "d".repeat(10_001),
    tags: { ["k".repeat(70)]: "v".repeat(1025), __proto: 1, constructor: "x", "": 1, source_id: "other" },
  });
  const { fields, shortened } = uploadFields(item, { provider: "mux", id: "1" });
  expect(fields).toMatchObject({ title: "\ufffd".repeat(500), tags: { source_id: "1", source_provider: "mux" } });
  expect((fields.description as string).length).toBe(10_000);
  expect(shortened).toHaveLength(5);
  const many = plainItem({
    title: " ",
    filename: "",
    media,
    tags: Object.fromEntries(Array.from({ length: 200 }, (_, at) => [`t${at}`, at])),
  });
  const limited = uploadFields(many, { provider: "mux", id: "7" }).fields;
  expect(limited).toMatchObject({ title: "7", filename: "video" });
  expect(Object.keys(limited.tags as object)).toHaveLength(100);
  const long = "é".repeat(2000);
  expect(tagOf(long).length).toBeLessThanOrEqual(1024);
  expect(tagOf(long)).not.toBe(tagOf(`x${long}`));
});

test("a tree is grouped by name, each side-car with the longest name that fits", async () => {
  const paths = [
    "a.b.en.vtt",
    "a.b.mp4",
    "a.de.srt",
    "a.fr.ttml",
    "a.info.json",
    "a.jpg",
    "a.mov",
    "ab.vtt",
    "d/a.mp4",
    "d/a.nfo",
    "d/b.vtt",
  ];
  async function* files(): AsyncGenerator<TreeFile> {
    for (const path of paths) yield { path, bytes: 1, modifiedAt: null, read: async () => new Uint8Array() };
  }
  const found = await Array.fromAsync(videosIn(files()));
  expect(found.map(({ id, data }) => [id, (data as TreeItem).sideCars.map(({ path }) => path)])).toEqual([
    ["a.b.mp4", ["a.b.en.vtt"]],
    ["a.mov", ["a.de.srt", "a.fr.ttml", "a.info.json", "a.jpg"]],
    ["d/a.mp4", ["d/a.nfo"]],
  ]);
});

test("TTML next to a video is a caption in the language of its name or its root, other XML is none", async () => {
  const ttml = (language: string) =>
    `<?xml version="1.0"?>\n<tt xmlns="http://www.w3.org/ns/ttml" ${language}><body/></tt>`;
  const sideCars = {
    "a.ttml": ttml('xml:lang="de-at"'),
    "a.fr.xml": ttml('xml:lang="en"'),
    "a.dfxp": ttml(""),
    "a.xml": "<movie><title/></movie>",
  };
  const file = (path: string, content = ""): TreeFile => ({
    path,
    bytes: content.length,
    modifiedAt: null,
    read: async () => Buffer.from(content),
  });
  const files = Object.entries(sideCars).map(([path, content]) => file(path, content));
  const { captions, problems } = await loadTreeItem({ video: file("a.mp4"), sideCars: files }, {} as Media);
  expect([captions.map(({ language }) => language), problems]).toEqual([["de-AT", "fr", "und"], []]);
  expect(await captions[1]?.read()).toEqual(Buffer.from(sideCars["a.fr.xml"]));
});

test("side-car files of several tools are read, and faulty ones are refused", () => {
  const ours = {
    title: "T",
    tags: { year: 2020, flag: true },
    chapters: [{ title: "One", start: 1.5, end: 2 }],
    privacy: "private",
  };
  expect(metadataOfJson(JSON.stringify(ours))).toEqual({
    title: "T",
    tags: ours.tags,
    policy: "signed",
    chapters: [{ title: "One", startMs: 1500, endMs: 2000 }],
  });
  const theirs = {
    title: "T",
    tags: ["a"],
    upload_date: "20200102",
    availability: "unlisted",
    duration: 3,
    chapters: [{ title: "x" }, null],
  };
  expect(metadataOfJson(JSON.stringify(theirs))).toEqual({
    title: "T",
    tags: { a: true },
    policy: "public",
    seconds: 3,
    createdAt: "2020-01-02T00:00:00.000Z",
  });
  expect(metadataOfJson("[]")).toEqual({ tags: {} });
  expect(
    metadataOfNfo(
      "<movie><title>T &amp; U</title><plot>P</plot><genre>G</genre><premiered>2020-01-02</premiered></movie>",
    ),
  ).toEqual({
    title: "T & U",
    description: "P",
    tags: { G: true },
    createdAt: "2020-01-02T00:00:00.000Z",
  });
  expect(() => metadataOfJson("{")).toThrow(/not valid JSON/);
  expect(() => metadataOfNfo('<!DOCTYPE x [<!ENTITY a "b">]><movie/>')).toThrow(/cannot be read/);
});

test("a difference in bytes, duration or captions is found", () => {
  const entry = { id: "1", bytes: 10, seconds: 5, captions: 2 };
  const asset = { source_bytes: 10, duration_seconds: 5.4 } as any;
  expect(differences(entry, asset, 2)).toEqual([]);
  expect(differences(entry, { source_bytes: 9, duration_seconds: 4.4 } as any, 1)).toHaveLength(3);
  // Whole seconds may be rounded.
  expect(differences({ ...entry, isWholeSeconds: true }, { ...asset, duration_seconds: 6.4 }, 2)).toEqual([]);
  expect(differences({ ...entry, isWholeSeconds: true }, { ...asset, duration_seconds: 6.6 }, 2)).toHaveLength(1);
});

test("redirects quote what a proxy would interpret", async () => {
  const to = "watch" as const;
  const entries = ['/a "b" \\c', "/line\nbreak", "/{brace}", "/w/x", "/w/x"].map((path, at) => ({
    id: String(at),
    assetId: at,
    externalId: `vid_${at}`,
    stage: "verified" as const,
    oldPaths: [{ path, to }],
  }));
  const base = "https://v.example";
  expect(await redirects(entries, base, "nginx")).toContain(
    '  "/a \\"b\\" \\\\c" "https://v.example/watch/vid_0";\n  "/{brace}"',
  );
  const caddy = await redirects(entries, base, "caddy");
  expect(caddy).not.toMatch(/brace|break/);
  expect(caddy.match(/w\/x/g)).toHaveLength(1);
  expect(await redirects(entries, base, "csv")).toContain('"/line\nbreak",https://v.example/watch/vid_1\n');
});

test("times of providers become RFC 3339", () => {
  const expected = "2020-01-02T03:04:05.000Z";
  for (const value of ["1577934245", 1_577_934_245, "2020-01-02T03:04:05", "2020-01-02T04:04:05+01:00"])
    expect(time(value)).toBe(expected);
  for (const value of [null, "soon", {}, Number.NaN, 1e30, "1".repeat(400)]) expect(time(value)).toBeNull();
});

import { readdirSync } from "node:fs";
import { setImmediate as turn } from "node:timers/promises";
import { parse } from "csv-parse/sync";
import { sql } from "drizzle-orm";
import { beforeEach, describe, expect, test } from "vitest";
import { escapeCell, readTags, unescapeCell } from "#features/assets/csv-cells.ts";
import { amount } from "#test/support/amount.ts";
import { type TestApp, testApp } from "#test/support/app.ts";
import { expectError } from "#test/support/error.ts";
import { fc } from "#test/support/property.ts";
import { RESERVED_TAGS } from "#test/support/reserved-tags.ts";

let app: TestApp;
let tenant: { id: number };
let key: string;
beforeEach(async () => {
  app = await testApp({ rate_limit_uploads: "100000/60" });
  tenant = await app.tenant();
  key = await app.key(tenant.id);
});
const made = async (fields: Record<string, unknown> = {}, as = key): Promise<any> => {
  const video_asset = {
    title: "Old",
    input_status: "pending",
    playback_status: "draft",
    provider: "external_serve",
    source_bytes: 0,
    storage_bytes: 0,
    duration_seconds: 0,
    manifest_url: "https://cdn.example/a.m3u8",
    ...fields,
  };
  const tenantId = as === key ? tenant.id : tenant.id + 1;
  const source_key = `tenants/${tenantId}/x`;
  const answer = await app.as(as).createAsset({ tenant_id: tenantId, video_asset: { ...video_asset, source_key } });
  if (answer.status !== 201) throw new Error(answer.text);
  return answer.body.asset;
};
const asset = async (id: number) => (await app.as(key).getAsset(id)).body;
const send = (csv: string | Uint8Array, { type = "text/csv", query = "", ...options }: Record<string, any> = {}) =>
  app.call("POST", `/api/v1/assets/import${query}`, {
    key,
    ...options,
    raw: csv as string,
    headers: { "content-type": type },
  });
const exported = async (query = "", options: Record<string, string> = { key }) =>
  app.call("GET", `/api/v1/assets/export${query}`, options);

describe("the export", () => {
  test("is a CSV of four columns, newest first, with formulas escaped", async () => {
    await made({
      title: "=1+1",
      description: '"quoted", and\nbroken',
      tags: { a: 1, b: "x;y" },
      original_filename: "-a.mp4",
    });
    await made({ title: "Plain", description: "'=kept" });
    await made({ title: "theirs" }, await app.key((await app.tenant()).id));
    const answer = await exported();
    expect(answer.status).toBe(200);
    expect(answer.headers.get("content-type")).toBe("text/csv; charset=utf-8");
    expect(answer.headers.get("content-disposition")).toBe('attachment; filename="assets.csv"');
    expect(answer.text).toBe(
      [
        "title,description,tags,original_filename",
        "Plain,''=kept,{},",
        `'=1+1,"""quoted"", and\nbroken","{""a"":1,""b"":""x;y""}",'-a.mp4`,
        "",
      ].join("\r\n"),
    );
  });

  test("is also JSON, and of all tenants or one with the admin token", async () => {
    await made({ title: "=1", tags: { a: true } });
    await made({ title: "theirs" }, await app.key((await app.tenant()).id));
    const answer = await exported("?format=json");
    expect(answer.body).toEqual([{ title: "=1", description: null, tags: { a: true }, original_filename: null }]);
    expect(answer.headers.get("content-disposition")).toBe('attachment; filename="assets.json"');
    const titles = async (query: string) =>
      (await exported(`?format=json${query}`, { admin: app.admin })).body.map((each: any) => each.title);
    expect(await titles("")).toEqual(["theirs", "=1"]);
    expect(await titles(`&tenant_id=${tenant.id}`)).toEqual(["=1"]);
    expect((await exported("?format=json", { key: await app.key((await app.tenant()).id) })).body).toEqual([]);
    expectError(await exported("?format=xml"), 422, "validation_failed");
  });

  test("has every asset once, over all its pages", async () => {
    await app.opened.app.write(async (tx) =>
      tx.run(sql`
        with recursive n (i) as (values (1) union all select i + 1 from n where i < 1234)
        insert into assets (tenant_id, external_id, title, input_status, playback_status, playback_policy, source_key,
          created_at, updated_at)
        select ${tenant.id}, 'vid_' || i, 't' || i, 'pending', 'draft', 'signed', 'k', 1, 1 from n`),
    );
    const rows: string[][] = parse((await exported()).text, { from: 2 });
    expect(rows.map(([title]) => title)).toEqual(Array.from({ length: 1234 }, (_, index) => `t${1234 - index}`));
  });
});

describe("the import", () => {
  test("applies valid rows and reports every row, counted like in a spreadsheet", async () => {
    const a = await made({ original_filename: "a.mp4", tags: { keep: 1, old: 2 }, description: "stays" });
    const b = await made({ original_filename: "b.mp4", relative_path: "2026/b.mp4" });
    const c = await made({ original_filename: "b.mp4", relative_path: "2025/b.mp4" });
    const theirs = await made({ original_filename: "theirs.mp4" }, await app.key((await app.tenant()).id));
    const csv = [
      "\ufefforiginal_filename,Title,nonsense,tags,description,relative_path",
      'a.mp4,"New, and ""quoted""",x,"{""old"":null,""n"":0.5,""t"":true}",,',
      "b.mp4,Both,,,,",
      "b.mp4,First,,k=v; l = w ,,2026/b.mp4",
      '2025\\b.mp4,Second,,,"two\r\nlines",',
      "theirs.mp4,Mine,,,,",
      "",
      "too,few",
      ",Nobody,,,,",
      'a.mp4,,,"{broken",,',
      "a.mp4,,,novalue,,",
      'a.mp4,,,"{""a"":[1]}",,',
      `a.mp4,${"x".repeat(513)},,,,`,
      "a.mp4,,,,,",
    ].join("\r\n");
    await app.newEvents();
    const { status, body } = await send(csv);
    expect(status).toBe(200);
    expect(body).toEqual({
      applied: [
        { row: 2, asset_id: a.id, changed: ["title", "tags"] },
        { row: 4, asset_id: b.id, changed: ["title", "tags"] },
        { row: 5, asset_id: c.id, changed: ["title", "description"] },
        { row: 14, asset_id: a.id, changed: [] },
      ],
      unmatched: [
        { row: 3, original_filename: "b.mp4", reason: "ambiguous" },
        { row: 6, original_filename: "theirs.mp4", reason: "not_found" },
      ],
      errors: [8, 9, 10, 11, 12, 13].map((row) => ({ row, message: expect.any(String) })),
    });
    expect(await asset(a.id)).toMatchObject({
      title: 'New, and "quoted"',
      description: "stays",
      tags: { keep: 1, n: 0.5, t: true },
    });
    expect(await asset(b.id)).toMatchObject({ title: "First", tags: { k: "v", l: "w" } });
    expect(await asset(c.id)).toMatchObject({ title: "Second", description: "two\r\nlines", tags: {} });
    expect((await app.as({ admin: app.admin }).getAsset(theirs.id)).body.title).toBe("Old");
    expect(await app.newEvents()).toEqual([]);
    expect(readdirSync(app.opened.app.config.data_dir).filter((name) => name.startsWith("import"))).toEqual([]);
  });

  test("accepts a form too, and requires a tenant with the admin token", async () => {
    const { id } = await made({ original_filename: "a.mp4" });
    const csv = "title,original_filename\nNew,a.mp4\n";
    const form = (fields: Record<string, string>) => {
      const data = new FormData();
      for (const [name, value] of Object.entries(fields)) data.append(name, value);
      data.append("file", new File([csv], "a.csv", { type: "text/csv" }));
      return data;
    };
    const post = (data: FormData, options: Record<string, string>) => app.as({ ...options }).importAssets(data as any);
    expectError(await post(form({}), { admin: app.admin }), 422, "parameter_missing");
    expectError(await post(form({ tenant_id: "x" }), { admin: app.admin }), 422, "parameter_missing");
    expectError(await post(form({ tenant_id: "99" }), { admin: app.admin }), 404, "not_found");
    expectError(await post(form({ tenant_id: "99" }), { key }), 404, "not_found");
    expectError(await post(new FormData(), { key }), 422, "parameter_missing");
    expect((await asset(id)).title).toBe("Old");
    const answer = await post(form({ tenant_id: String(tenant.id) }), { admin: app.admin });
    expect(answer.body).toEqual({ applied: [{ row: 2, asset_id: id, changed: ["title"] }], unmatched: [], errors: [] });
    expect((await post(form({}), { key })).body.applied).toEqual([{ row: 2, asset_id: id, changed: [] }]);
    expect((await send(csv, { admin: app.admin, key: undefined, query: `?tenant_id=${tenant.id}` })).status).toBe(200);
  });

  test.for<[string, string | Uint8Array, number, string]>([
    ["empty", "", 422, "validation_failed"],
    ["without a header that names files", "title,tags\nNew,\n", 422, "validation_failed"],
    ["with a column twice", "title,title,original_filename\na,b,a.mp4\n", 422, "validation_failed"],
    ["not UTF-8", Buffer.from("title,original_filename\nN\xfcw,a.mp4\n", "latin1"), 422, "validation_failed"],
    [
      "cut in a character",
      Buffer.concat([Buffer.from("title,original_filename\nNew,a.mp4\nx,"), Buffer.from([0xc3])]),
      422,
      "validation_failed",
    ],
    ["with a quote that never ends", 'title,original_filename\nNew,a.mp4\n"x,a.mp4\n', 422, "validation_failed"],
    ["with a stray quote", 'title,original_filename\nNew,a.mp4\nx"y"z,a.mp4\n', 422, "validation_failed"],
    [
      "with a cell that never ends",
      `title,original_filename\nNew,a.mp4\n"${"x".repeat(2 << 20)}`,
      422,
      "document_too_complex",
    ],
  ])("of a file that is %s changes nothing", async ([, csv, status, code]) => {
    const { id } = await made({ original_filename: "a.mp4" });
    expectError(await send(csv), status, code);
    expect((await asset(id)).title).toBe("Old");
  });

  test("of another kind of file is refused", async () => {
    expectError(await send("{}", { type: "application/json" }), 415, "unsupported_media_type");
  });

  test("of several rows for one asset applies them in order", async () => {
    const { id } = await made({ original_filename: "a.mp4", tags: { a: 1 } });
    const { body } = await send("original_filename,title,tags\na.mp4,One,b=2\na.mp4,Two,c=3\na.mp4,Two,b=2\n");
    expect(body.applied.map((each: any) => each.changed)).toEqual([["title", "tags"], ["title", "tags"], []]);
    expect(await asset(id)).toMatchObject({ title: "Two", tags: { a: 1, b: "2", c: "3" }, description: null });
    expect((await app.as(key).listAssets({ q: "Two" })).body).toHaveLength(1);
    expect((await app.as(key).listAssets({ q: "Old" })).body).toEqual([]);
  });

  test.each([
    ["many pairs", Array.from({ length: 1001 }, (_, n) => `k${n}=v`).join(";"), "tags: must have at most 1000 keys"],
    [
      "many keys",
      JSON.stringify(Object.fromEntries(Array.from({ length: 1001 }, (_, n) => [`k${n}`, null]))),
      "tags: must have at most 1000 keys",
    ],
    ["a long cell", "x".repeat(300_000), "tags: must have at most 262144 characters"],
  ])("refuses %s in the cell of tags", async (_, cell, message) => {
    await made({ original_filename: "a.mp4" });
    const { status, body } = await send(`original_filename,tags\na.mp4,"${cell.replaceAll('"', '""')}"\n`);
    expect([status, body.errors]).toEqual([200, [{ row: 2, message }]]);
  });

  test("respects the limits of tags", async () => {
    const { id } = await made({ original_filename: "a.mp4", tags: { one: 1 } });
    const tags = Array.from({ length: 100 }, (_, index) => `k${index}=v`).join(";");
    const { body } = await send(`original_filename,tags\na.mp4,${tags}\na.mp4,k=1\n`);
    expect(body).toMatchObject({
      applied: [{ row: 3 }],
      errors: [{ row: 2, message: expect.stringContaining("100") }],
    });
    expect((await asset(id)).tags).toEqual({ one: 1, k: "1" });
  });

  test("of many rows is one transaction, and others read meanwhile", async () => {
    const count = 5000;
    await app.opened.app.write(async (tx) =>
      tx.run(sql`
        with recursive n (i) as (values (1) union all select i + 1 from n where i < ${count})
        insert into assets (tenant_id, external_id, title, original_filename, input_status, playback_status,
          playback_policy, source_key, created_at, updated_at)
        select ${tenant.id}, 'vid_' || i, 't', i || '.mp4', 'pending', 'draft', 'signed', 'k', 1, 1 from n`),
    );
    const rows = Array.from({ length: count }, (_, index) => `new ${index},${index + 1}.mp4`);
    const importing = send(`title,original_filename\n${rows.join("\n")}\n`);
    let done = false;
    void importing.then(() => {
      done = true;
    });
    const seen = new Set<number>();
    while (!done) {
      await turn();
      const changed = await app.opened.app.db.get<{ n: number }>(
        sql`select count(*) as n from assets where title <> 't'`,
      );
      seen.add(changed?.n ?? -1);
    }
    expect([...seen].every((n) => n === 0 || n === count)).toBe(true);
    expect((await importing).body.applied).toHaveLength(count);
  });
});

describe("a round trip", () => {
  const text = (max: number) =>
    fc
      .oneof(
        fc.string({ unit: "binary", maxLength: max }),
        fc.stringMatching(/^'{0,3}[=+@\t\r-]?[ -~\r\n]{0,20}$/),
        fc.constantFrom(
          "'",
          "''",
          "'=",
          "''=1",
          "=",
          "\ufeffx",
          " x ",
          "\r",
          "\n",
          "\r\n",
          '"',
          '""',
          ",",
          "'-",
          "x\t",
        ),
      )
      .filter((value) => !value.includes("\0") && value.length <= max);

  test("of a cell preserves it", () => {
    fc.assert(
      fc.property(text(200), (value) => unescapeCell(escapeCell(value)) === value),
      { numRuns: 2000 },
    );
    fc.assert(
      fc.property(text(200), (value) => !/^[=+\-@\t\r]/.test(escapeCell(value))),
      { numRuns: 2000 },
    );
  });

  test("of all assets changes nothing; into blank ones it sets title, description and tags", async () => {
    const notBlank = (value: string) => value.trim() !== "";
    const tagKey = text(64)
      .filter(notBlank)
      .filter((name) => !RESERVED_TAGS.includes(name));
    const number = fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => (value === 0 ? 0 : value));
    const tags = fc.dictionary(tagKey, fc.oneof(text(100), number, fc.boolean()), { maxKeys: 5 });
    const record = fc.record({ title: text(300).filter(notBlank), description: text(300), tags });
    await fc.assert(
      fc.asyncProperty(fc.array(record, { minLength: 1, maxLength: 5 }), async (records) => {
        // At the start: after a failure nothing else would delete them, and every smaller counterexample would fail too.
        for (const { id } of (await app.as(key).listAssets()).body) await app.as(key).deleteAsset(id);
        const before: any[] = [];
        for (const [index, fields] of records.entries())
          before.push(await made({ ...fields, original_filename: `${before.length}-${index}.mp4` }));
        const { text: csv } = await exported();
        const same = await send(csv);
        expect(same.body).toEqual({
          applied: before.map((_, index) => ({ row: index + 2, asset_id: before.at(-1 - index).id, changed: [] })),
          unmatched: [],
          errors: [],
        });
        await app.opened.app.write(async (tx) =>
          tx.run(sql`update assets set title = '-', description = null, tags = '{}'`),
        );
        await send(csv);
        for (const { id, title, description, tags: kept } of before) {
          expect(await asset(id)).toMatchObject({ title, description: description || null });
          expect((await asset(id)).tags).toEqual(kept);
        }
      }),
      { numRuns: amount(20, 60) },
    );
  });
});

test("tags are read from JSON and from pairs", () => {
  expect(readTags(' {"a":1} ')).toEqual({ a: 1 });
  expect(readTags("a=1;b==;c=")).toEqual({ a: "1", b: "=", c: "" });
  for (const bad of ["a", "=a", "{", "{}x"]) expect(() => readTags(bad)).toThrow(/^tags: /);
});

import { setImmediate as turn } from "node:timers/promises";
import { sql } from "drizzle-orm";
import { beforeEach, describe, expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import { expectError } from "#test/support/error.ts";
import { uploaded } from "#test/support/flow.ts";

const path = "/api/v1/collections";
let app: TestApp;
let tenant: { id: number };
let key: string;
beforeEach(async () => {
  app = await testApp({ rate_limit_uploads: "1000/60" });
  tenant = await app.tenant();
  key = await app.key(tenant.id);
});
const post = (collection: unknown, as: Record<string, string> = { key }, tenant_id = tenant.id) =>
  app.call("POST", path, { ...as, body: { tenant_id, collection } });
const made = async (slug: string, fields: Record<string, unknown> = {}) => {
  const answer = await post({ name: slug, slug, ...fields });
  expect(answer.status, answer.text).toBe(201);
  return answer.body;
};
const change = (id: number, collection: unknown, method = "PATCH") =>
  app.call(method, `${path}/${id}`, { key, body: { collection } });
const one = async (id: number) => (await app.as(key).getCollection(id)).body;

describe("a collection", () => {
  test("is created, read, changed by PATCH and PUT, and deleted, without events", async () => {
    const parent = await made("parent");
    const first = await post({
      name: "Ferien",
      slug: "ferien-2026",
      description: null,
      position: -3,
      parent_id: parent.id,
    });
    expect(first.status).toBe(201);
    expect(first.body).toEqual({
      id: parent.id + 1,
      tenant_id: tenant.id,
      parent_id: parent.id,
      name: "Ferien",
      slug: "ferien-2026",
      description: null,
      position: -3,
      asset_count: 0,
      is_public: false,
      public_url: null,
      embed_url: null,
      feed_url: null,
      created_at: expect.any(String),
      updated_at: expect.any(String),
    });
    expect(await one(first.body.id)).toEqual(first.body);
    app.advance(1000);
    const changed = await change(first.body.id, { description: "Süd" });
    expect(changed.body).toEqual({ ...first.body, description: "Süd", updated_at: expect.any(String) });
    expect(changed.body.updated_at).not.toBe(first.body.updated_at);
    const put = await change(first.body.id, { name: "F", slug: "f", position: 7, parent_id: null }, "PUT");
    expect(put.body).toMatchObject({ name: "F", slug: "f", position: 7, parent_id: null, description: "Süd" });
    expect((await change(first.body.id, { slug: "f" })).status).toBe(200);
    const gone = await app.as(key).deleteCollection(first.body.id);
    expect([gone.status, gone.text]).toEqual([204, ""]);
    for (const method of ["GET", "DELETE"])
      expectError(await app.call(method, `${path}/${first.body.id}`, { key }), 404, "not_found");
    expect(await app.newEvents()).toEqual([]);
  });

  test("requires a tenant_id from every caller", async () => {
    const body = { collection: { name: "A", slug: "a" } };
    expectError(await app.as({ admin: app.admin }).unchecked.createCollection(body), 422, "parameter_missing");
    expectError(await app.as(key).unchecked.createCollection(body), 422, "parameter_missing");
    const answer = await app.as({ admin: app.admin }).createCollection({ ...body, tenant_id: tenant.id });
    expect([answer.status, answer.body.tenant_id]).toEqual([201, tenant.id]);
    expectError(await app.as({ admin: app.admin }).createCollection({ ...body, tenant_id: 99 }), 404, "not_found");
  });

  test("is created once with an Idempotency-Key", async () => {
    const ask = () =>
      app
        .as({ key, headers: { "idempotency-key": "1" } })
        .createCollection({ tenant_id: tenant.id, collection: { name: "A", slug: "a" } });
    const first = await ask();
    const again = await ask();
    expect([again.status, again.body, again.headers.get("idempotent-replayed")]).toEqual([201, first.body, "true"]);
  });

  test("has a slug that is unique in its tenant, and well-formed", async () => {
    const { id } = await made("taken");
    const other = await made("other");
    expectError(await post({ name: "x", slug: "taken" }), 422, "validation_failed");
    expectError(await change(other.id, { slug: "taken" }), 422, "validation_failed");
    const foreign = await app.key((await app.tenant()).id);
    expect((await post({ name: "x", slug: "taken" }, { key: foreign }, tenant.id + 1)).status).toBe(201);
    for (const slug of ["", "A", "a b", "-a", "a-", "a--b", "ä", "a_b", "x".repeat(101)])
      expectError(await post({ name: "x", slug }), 422, "validation_failed", slug);
    expect((await one(id)).slug).toBe("taken");
  });

  test.for<[string, unknown, string]>([
    ["no wrapper", undefined, "parameter_missing"],
    ["a wrapper that is a list", [], "parameter_missing"],
    ["no name", { slug: "x" }, "parameter_missing"],
    ["no slug", { name: "x" }, "parameter_missing"],
    ["a name of the wrong type", { name: 5, slug: "x" }, "parameter_missing"],
    ["a blank name", { name: " ", slug: "x" }, "validation_failed"],
    ["half a character", { name: "\ud800", slug: "x" }, "validation_failed"],
    ["a position that is none", { name: "x", slug: "x", position: 1.5 }, "validation_failed"],
    ["a position too far", { name: "x", slug: "x", position: 1e12 }, "validation_failed"],
    ["a parent that is none", { name: "x", slug: "x", parent_id: "1" }, "validation_failed"],
    ["a parent that does not exist", { name: "x", slug: "x", parent_id: 999 }, "validation_failed"],
  ])("with %s is refused", async ([, collection, code]) => {
    expectError(await post(collection), 422, code);
    expect((await app.as(key).listCollections()).body).toEqual([]);
  });
});

describe("the hierarchy", () => {
  test("has no cycles, and no folders of other tenants", async () => {
    const a = await made("a");
    const b = await made("b", { parent_id: a.id });
    const c = await made("c", { parent_id: b.id });
    const foreign = await app.key((await app.tenant()).id);
    const theirs = (await post({ name: "x", slug: "x" }, { key: foreign }, tenant.id + 1)).body;
    for (const parent_id of [a.id, b.id, c.id, theirs.id, 999, 1e300])
      expectError(await change(a.id, { parent_id }), 422, "validation_failed", `a in ${parent_id}`);
    expectError(await post({ name: "x", slug: "x", parent_id: theirs.id }), 422, "validation_failed");
    expect((await change(c.id, { parent_id: a.id })).status).toBe(200);
    expect((await change(b.id, { parent_id: c.id })).status).toBe(200);
    // One of two concurrent requests that would create a cycle is refused.
    const d = await made("d");
    const e = await made("e");
    const both = await Promise.all([change(d.id, { parent_id: e.id }), change(e.id, { parent_id: d.id })]);
    expect(both.map((answer) => answer.status).sort()).toEqual([200, 422]);
  });

  test("is returned as a tree, each level in the order of the list", async () => {
    const root = await made("root", { position: 2 });
    const first = await made("first", { position: 1 });
    const late = await made("late", { parent_id: root.id, position: 5 });
    const early = await made("early", { parent_id: root.id });
    const deep = await made("deep", { parent_id: late.id });
    const foreign = await app.key((await app.tenant()).id);
    await post({ name: "x", slug: "x" }, { key: foreign }, tenant.id + 1);
    const tree = await app.as(await app.key(tenant.id, ["billing:write"])).getCollectionTree();
    expect(tree.headers.get("content-type")).toMatch(/^application\/json/);
    expect(tree.body).toEqual([
      { ...first, children: [] },
      {
        ...root,
        children: [
          { ...early, children: [] },
          { ...late, children: [{ ...deep, children: [] }] },
        ],
      },
    ]);
    const slugs = async (query: string) =>
      (await app.call("GET", `${path}/tree${query}`, { admin: app.admin })).body.map((each: any) => each.slug);
    expect(await slugs("")).toEqual(["x", "first", "root"]);
    expect(await slugs(`?tenant_id=${tenant.id}`)).toEqual(["first", "root"]);
    expect((await app.as(key).deleteCollection(root.id)).status).toBe(204);
    expect((await app.as(key).getCollectionTree()).body.map((each) => each.slug)).toEqual(["early", "first", "late"]);
  });

  test("may be very deep: it is returned, and a cycle at its end is still detected", async () => {
    const depth = 20_000;
    await app.opened.app.write(async (tx) =>
      tx.run(sql`
        with recursive n (i) as (values (1) union all select i + 1 from n where i < ${depth})
        insert into collections (id, tenant_id, parent_id, name, slug, created_at, updated_at)
        select i, ${tenant.id}, nullif(i - 1, 0), 'c' || i, 'c' || i, 1, 1 from n`),
    );
    const { status, text } = await app.as({ key, headers: {} }).getCollectionTree();
    expect([status, text.split('"children":[').length - 1, text.slice(-depth * 2)]).toEqual([
      200,
      depth,
      `${"]}".repeat(depth)}]`.slice(-depth * 2),
    ]);
    expectError(await change(1, { parent_id: depth }), 422, "validation_failed");
    expect((await change(2, { parent_id: null })).status).toBe(200);
    // It is from an older version, and does not grow.
    expectError(await change(1, { parent_id: depth }), 422, "collection_limit_reached");
    expect((await change(4, { parent_id: 3 })).status).toBe(200);
  });
});

describe("the limits of a tenant's collections", () => {
  /** Inserts a chain or a flat list of collections; returns the first and last id. */
  const insert = (count: number, { isChain }: { isChain: boolean }) =>
    app.opened.app.write(async (tx) => {
      const [{ first }] = (await tx.all(sql`select coalesce(max(id), 0) + 1 as first from collections`)) as [
        { first: number },
      ];
      await tx.run(sql`
        with recursive n (i) as (values (0) union all select i + 1 from n where i < ${count - 1})
        insert into collections (id, tenant_id, parent_id, name, slug, created_at, updated_at)
        select i + ${first}, ${tenant.id}, iif(${isChain ? 1 : 0} and i > 0, i + ${first} - 1, null),
          'l' || i, 'l' || (i + ${first}), 1, 1 from n`);
      return { first, last: first + count - 1 };
    });
  const create = (slug: string, fields: Record<string, unknown> = {}) =>
    app.as(key).createCollection({ tenant_id: tenant.id, collection: { name: slug, slug, ...fields } });
  const clear = () => app.opened.app.write(async (tx) => tx.run(sql`delete from collections`));

  test("are 32 levels, for new and for moved ones", async () => {
    await clear();
    const chain = await insert(31, { isChain: true });
    const other = await insert(2, { isChain: true });
    const last = await create("level-32", { parent_id: chain.last });
    expect(last.status).toBe(201);
    expectError(await create("level-33", { parent_id: last.body.id }), 422, "collection_limit_reached");
    expectError(await change(other.first, { parent_id: chain.last }), 422, "collection_limit_reached");
    expectError(await change(other.last, { parent_id: last.body.id }), 422, "collection_limit_reached");
    expect((await change(other.last, { parent_id: chain.last })).status).toBe(200);
    expect((await change(other.first, { parent_id: chain.last - 1 })).status).toBe(200);
  });

  test("are 10,000", async () => {
    await clear();
    const { first } = await insert(9_999, { isChain: false });
    expect((await create("last")).status).toBe(201);
    expectError(await create("one-more"), 422, "collection_limit_reached");
    expect((await app.as(key).deleteCollection(first)).status).toBe(204);
    expect((await create("one-more")).status).toBe(201);
    await clear();
  });
});

describe("the list", () => {
  test("is ordered by position, age and id, and paged in that order", async () => {
    const slugs: string[] = [];
    for (const [slug, position] of [
      ["c", 1],
      ["a", -1],
      ["d", 1],
      ["e", 1],
      ["b", 0],
    ] as const)
      await made(slug, { position });
    const foreign = await app.key((await app.tenant()).id);
    await post({ name: "x", slug: "x" }, { key: foreign }, tenant.id + 1);
    for (let at: string | undefined = `${path}?limit=2`; at; ) {
      const answer = await app.call("GET", at, { key: await app.key(tenant.id, ["assets:read"]) });
      slugs.push(...answer.body.map((each: any) => each.slug));
      expect(answer.body.length).toBeLessThanOrEqual(2);
      at = /^<([^>]+)>/.exec(answer.headers.get("link") ?? "")?.[1];
    }
    expect(slugs).toEqual(["a", "b", "c", "d", "e"]);
    for (const cursor of ["x", "aWQ6Mg", "aWQ6MToyOjM6NA"])
      expectError(await app.as(key).listCollections({ cursor }), 422, "validation_failed", cursor);
  });
});

describe("assets in a collection", () => {
  test("are assigned by upload and PATCH, counted, and an id of another tenant counts as none", async () => {
    const { id } = await made("here");
    const there = await made("there");
    const foreign = await app.key((await app.tenant()).id);
    const theirs = (await post({ name: "x", slug: "x" }, { key: foreign }, tenant.id + 1)).body.id;
    const { asset } = await uploaded(app, key, { collection_id: id });
    expect(asset.collection_id).toBe(id);
    expect((await uploaded(app, key, { collection_id: theirs })).asset.collection_id).toBe(null);
    const patch = async (collection_id: unknown) =>
      (await app.as(key).unchecked.updateAsset(asset.id, { video_asset: { collection_id } })).body;
    const counts = async () => [(await one(id)).asset_count, (await one(there.id)).asset_count];
    expect(await counts()).toEqual([1, 0]);
    expect((await patch(there.id)).collection_id).toBe(there.id);
    expect(await counts()).toEqual([0, 1]);
    expect((await patch(undefined)).collection_id).toBe(there.id);
    for (const none of [theirs, 999, null]) {
      await patch(id);
      expect([(await patch(none)).collection_id, await counts()]).toEqual([null, [0, 0]]);
    }
    await patch(id);
    const listed = await app.as(key).listAssets({ collection_id: id });
    expect(listed.body.map((each) => each.id)).toEqual([asset.id]);
    await app.as(key).deleteAsset(asset.id);
    expect(await counts()).toEqual([0, 0]);
  });

  test("remain when it is deleted, also a hundred thousand, without delaying readers", async () => {
    const { id } = await made("full");
    const { id: other } = await made("other");
    await app.opened.app.write(async (tx) =>
      tx.run(sql`
        with recursive n (i) as (values (1) union all select i + 1 from n where i < 100000)
        insert into assets (tenant_id, external_id, title, collection_id, input_status, playback_status,
          playback_policy, source_key, created_at, updated_at)
        select ${tenant.id}, 'vid_' || i, 't', iif(i = 1, ${other}, ${id}), 'pending', 'draft', 'signed', 'k', 1, 1 from n`),
    );
    expect((await one(id)).asset_count).toBe(99_999);
    const deleted = app.as(key).deleteCollection(id);
    let done = false;
    void deleted.then(() => {
      done = true;
    });
    let reads = 0;
    for (; !done; reads++) {
      await turn();
      const { status, body } = await app.as(key).getCollection(id);
      // Until it commits, no change is visible.
      if (status !== 404) expect([status, body.asset_count]).toEqual([200, 99_999]);
    }
    expect((await deleted).status).toBe(204);
    // The event loop kept running: iterations are counted, because their duration depends on the machine.
    expect(reads).toBeGreaterThan(300);
    expect((await app.as(key).listAssets({ collection_id: id, limit: 1 })).body).toEqual([]);
    expect((await app.as(key).listAssets({ collection_id: other })).body).toHaveLength(1);
    expect((await app.as(key).listAssets({ limit: 1 })).body[0].collection_id).toBe(null);
  });
});

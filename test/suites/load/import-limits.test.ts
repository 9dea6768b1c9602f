import { request as httpRequest } from "node:http";
import { sql } from "drizzle-orm";
import { beforeEach, describe, expect, test } from "vitest";
import { finishStaleImports, recoverImports } from "#features/assets/import/recover.ts";
import { DOCUMENT_LIMITS } from "#src/lib/base/document-limits.ts";
import { rows } from "#test/support/amount.ts";
import { type TestApp, testApp } from "#test/support/app.ts";
import { until } from "#test/support/descendants.ts";
import { expectError } from "#test/support/error.ts";
import { atEnd, newFolder } from "#test/support/folder.ts";
import { startServer } from "#test/support/process.ts";

const CSV = { "content-type": "text/csv" };

describe("an import", () => {
  let app: TestApp;
  let tenant: { id: number };
  let key: string;
  beforeEach(async () => {
    app = await testApp({ rate_limit_uploads: "100000/60" });
    tenant = await app.tenant();
    key = await app.key(tenant.id);
  });
  const send = (raw: unknown, as = key) =>
    app.call("POST", "/api/v1/assets/import", { key: as, raw: raw as string, headers: CSV });
  const assets = (count: number) =>
    app.opened.app.write(async (tx) =>
      tx.run(sql`
        with recursive n (i) as (values (1) union all select i + 1 from n where i < ${count})
        insert into assets (tenant_id, external_id, title, original_filename, input_status, playback_status,
          playback_policy, source_key, created_at, updated_at)
        select ${tenant.id}, 'vid_' || i, 't', i || '.mp4', 'pending', 'draft', 'signed', 'k', 1, 1 from n`),
    );
  const count = async (condition: string, from = "assets") =>
    (await app.opened.app.db.all<{ n: number }>(sql.raw(`select count(*) as n from ${from} where ${condition}`)))[0]?.n;
  const locks = () => count("true", "imports");
  const staged = () => count("true", "import_rows");
  const rowsOf = (from: number, to: number, title = "new") =>
    Array.from({ length: to - from + 1 }, (_, i) => `${title} ${from + i},${from + i}.mp4\n`).join("");

  test.each([
    // Rows that need no database lookup, which takes long with a remote database.
    ["rows", `original_filename,title\n${"a\n".repeat(DOCUMENT_LIMITS.csvRows + 1)}`],
    ["columns", `original_filename${",x".repeat(DOCUMENT_LIMITS.csvColumns)}\n`],
    ["bytes of a row", `original_filename\n"${"x".repeat(DOCUMENT_LIMITS.csvRowBytes)}"\n`],
  ])("with too many %s is refused, and changes nothing", async (_, raw) => {
    expectError(await send(raw), 422, "document_too_complex");
    expect([await locks(), await staged()]).toEqual([0, 0]);
  });

  test("beyond one transaction applies all rows in order, including several for one asset", async () => {
    await assets(7000);
    const csv = `title,tags,original_filename\n${Array.from({ length: 7000 }, (_, i) => `new ${i + 1},a=1,${i + 1}.mp4\n`).join("")}last,b=2,1.mp4\n,"{""a"":null}",6999.mp4\nx,,none.mp4\n`;
    const { status, body } = await send(csv);
    expect(status).toBe(200);
    expect(body.applied).toHaveLength(7002);
    expect(body.applied.slice(-2)).toEqual([
      { row: 7002, asset_id: 1, changed: ["title", "tags"] },
      { row: 7003, asset_id: 6999, changed: ["tags"] },
    ]);
    expect(body.unmatched).toEqual([{ row: 7004, original_filename: "none.mp4", reason: "not_found" }]);
    expect(await count("title like 'new %'")).toBe(6999);
    const asset = async (id: number) => (await app.as(key).getAsset(id)).body;
    expect(await asset(1)).toMatchObject({ title: "last", tags: { a: "1", b: "2" } });
    expect(await asset(6999)).toMatchObject({ title: "new 6999", tags: {} });
    expect([await locks(), await staged()]).toEqual([0, 0]);
  });

  test("with a malformed end changes nothing, however many rows came before", async () => {
    await assets(7000);
    expectError(await send(`title,original_filename\n${rowsOf(1, 7000)}"x`), 422, "validation_failed");
    expect(await count("title <> 't'")).toBe(0);
    expect([await locks(), await staged()]).toEqual([0, 0]);
  });

  test("keeps concurrent changes where no row sets the field", async () => {
    await assets(9000);
    const importing = send(`title,tags,original_filename\n${rowsOf(1, 9000).replaceAll(",", ",a=1,")}`);
    await until("the rows to be applied", async () => ((await count("title <> 't'")) ?? 0) > 0);
    const body = { video_asset: { description: "mine" } };
    expect((await app.as(key).updateAsset(9000, body)).status).toBe(200);
    const tags = await app.as(key).updateTags(8999, { mine: true });
    expect(tags.status).toBe(200);
    expect((await importing).status).toBe(200);
    const assetOf = async (id: number) => (await app.as(key).getAsset(id)).body;
    expect(await assetOf(9000)).toMatchObject({ title: "new 9000", description: "mine", tags: { a: "1" } });
    expect(await assetOf(8999)).toMatchObject({ title: "new 8999", tags: { a: "1", mine: true } });
  });

  test("of a dead process is finished: completed when it was committed, rolled back when it was not", async () => {
    await assets(3);
    const { app: inner } = app.opened;
    const leave = (owner: string, committedAt: number | null) =>
      inner.write(async (tx) => {
        const at = inner.clock.now();
        await tx.run(sql`
          insert into imports (id, tenant_id, owner, committed_at, renewed_at, created_at)
          values (7, ${tenant.id}, ${owner}, ${committedAt}, ${at}, ${at})`);
        await tx.run(
          sql`insert into import_rows (import_id, asset_id, row, change) values (7, 2, 2, '{"title":"left"}')`,
        );
      });
    await leave("a", null);
    // Its owner may be alive.
    await finishStaleImports(inner);
    expect(await locks()).toBe(1);
    expectError(await send("original_filename,title\n1.mp4,x\n"), 409, "import_in_progress");
    app.advance(120_000);
    await finishStaleImports(inner);
    expect([await locks(), await staged(), await count("title = 'left'")]).toEqual([0, 0, 0]);
    await leave("b", 1);
    await recoverImports(inner);
    // With a remote database, another server may run it.
    if (process.env.VODBOX_TEST_DATABASE === "sqld") {
      app.advance(120_000);
      await finishStaleImports(inner);
    }
    expect([await locks(), await staged(), await count("title = 'left'")]).toEqual([0, 0, 1]);
    expect((await send("original_filename,title\n1.mp4,x\n")).status).toBe(200);
  });
});

test.each(rows([2, 1], 1))(
  "a second import of a tenant is 409 while one runs, in a server of %i processes",
  async (processes) => {
    const args = processes > 1 ? ["--processes", String(processes)] : [];
    const server = await startServer(newFolder(), { args });
    const { admin, as, call, base } = server;
    const tenantOf = async (slug: string) => {
      const { id } = (await as({ admin }).createTenant({ name: slug, slug })).body;
      const body = { tenant_id: id, scopes: ["assets:write"] };
      return (await as({ admin }).createApiKey(body)).body.token as string;
    };
    const key = await tenantOf("a");
    const other = await tenantOf("b");
    const headers = { "x-api-key": key, ...CSV };
    const small = { raw: "original_filename,title\nnone.mp4,x\n", headers: CSV };
    // Each on its own connection, so that all processes respond.
    const again = () =>
      fetch(`${base}/api/v1/assets/import`, {
        method: "POST",
        body: small.raw,
        headers: { ...headers, connection: "close" },
      });
    /** An import whose body is not finished. If it meets another import of this test, it is sent again. */
    const begun = async () => {
      for (;;) {
        const request = httpRequest(`${base}/api/v1/assets/import`, { method: "POST", headers, agent: false });
        atEnd(async () => void request.destroy());
        let status: number | undefined;
        const answered = new Promise<number | undefined>((resolve) => {
          request.on("error", () => resolve(undefined));
          request.on("response", (response) => {
            status = response.resume().statusCode;
            resolve(status);
          });
        });
        request.write("original_filename,title\n");
        await until("the import to begin", async () => status !== undefined || (await again()).status === 409);
        if (status === undefined) return { request, answered };
      }
    };
    const first = await begun();
    for (let n = 0; n < 8; n++) {
      const refused = await again();
      expect([refused.status, ((await refused.json()) as { code: string }).code]).toEqual([409, "import_in_progress"]);
    }
    expect((await call("POST", "/api/v1/assets/import", { key: other, ...small })).status).toBe(200);
    first.request.end("none.mp4,x\n");
    expect(await first.answered).toBe(200);
    expect((await again()).status).toBe(200);
    // When its client disconnects, the lock is released.
    const torn = await begun();
    torn.request.destroy();
    await until("its lock to be free", async () => (await again()).status === 200);
  },
);

import { beforeAll, describe, expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import { expectError } from "#test/support/error.ts";

let app: TestApp;
let key: string;
let tenant: { id: number };
beforeAll(async () => {
  app = await testApp();
  tenant = await app.tenant();
  key = await app.key(tenant.id);
});
const begin = (fields: Record<string, unknown> = {}) =>
  app.as(key).createImportRun({ provider: "mux", total: 40, ...fields });
const report = ({ body: { id } }: { body: { id: number } }, body: unknown) =>
  app.as(key).unchecked.updateImportRun(id, body);
const problem = { source_id: "a1", title: "Trip", asset_id: null, reason: "The file is missing" };

describe("an import run", () => {
  test("shows what its command reports, is interrupted while it is silent, and ends once", async () => {
    const run = await begin({ provider: "folder", source: "/videos" });
    expect(run).toMatchObject({
      status: 201,
      body: { tenant_id: tenant.id, provider: "folder", source: "/videos", status: "running", total: 40, imported: 0 },
    });
    const counts = { imported: 10, unchanged: 3, failed: 1, encoding: 2, bytes: 5e12 };
    expect((await report(run, counts)).body).toMatchObject({ ...counts, status: "running", ended_at: null });
    app.advance(61_000);
    const read = async () => (await app.as(key).getImportRun(run.body.id)).body;
    expect(await read()).toMatchObject({ status: "interrupted", ended_at: null });
    expect((await report(run, { imported: 11 })).body).toMatchObject({ status: "running", imported: 11, failed: 1 });
    const end = { status: "failed", error: "The list ended", problems: [problem], problem_count: 7 };
    expect((await report(run, end)).body).toMatchObject({ status: "failed", ended_at: expect.any(String) });
    app.advance(61_000);
    expect(await read()).toMatchObject({ ...end, ...counts, imported: 11 });
    expectError(await report(run, { imported: 12 }), 409, "import_run_ended");
    const [listed] = (await app.as(key).listImportRuns({ limit: 1 })).body;
    expect(listed).toMatchObject({ id: run.body.id, problem_count: 7 });
    expect(listed).not.toHaveProperty("problems");
    expect((await app.as(key).deleteImportRun(run.body.id)).status).toBe(204);
    expectError(await app.as(key).getImportRun(run.body.id), 404, "not_found");
  });

  test.each<[string, Record<string, unknown>]>([
    ["an unknown source", { provider: "youtube" }],
    ["no source", { provider: undefined }],
    ["a part of a video", { total: 1.5 }],
    ["fewer than no videos", { total: -1 }],
    ["more videos than a platform has", { total: 1e12 }],
    ["a long path", { source: "x".repeat(1001) }],
  ])("is refused with %s", async (_, fields) => {
    const refused = await begin(fields);
    expect(refused.status, JSON.stringify(refused.body)).toBe(422);
  });

  test.each<[string, unknown]>([
    ["another state", { status: "interrupted" }],
    ["too many problems", { problems: Array(101).fill(problem) }],
    ["problems of too many bytes", { problems: Array(50).fill({ ...problem, reason: "ä".repeat(1000) }) }],
    ["a problem without a reason", { problems: [{ ...problem, reason: undefined }] }],
    ["a text for a number", { imported: "1" }],
    ["more bytes than a number holds", { bytes: 2 ** 60 }],
  ])("keeps what it has after a report with %s", async (_, body) => {
    const run = await begin();
    expect((await report(run, body)).status).toBe(422);
    expect((await app.as(key).getImportRun(run.body.id)).body).toMatchObject({
      status: "running",
      problems: [],
    });
  });

  test("needs the scope of assets, and the newest 50 are kept", async () => {
    const reader = await app.key(tenant.id, ["assets:read"]);
    expectError(await app.as(reader).createImportRun({ provider: "mux", total: 1 }), 403, "forbidden_scope");
    for (let each = 0; each < 51; each++) await begin({ total: each });
    const all = (await app.as(reader).listImportRuns({ limit: 100 })).body;
    expect(all.map(({ total }: { total: number }) => total)).toEqual(Array.from({ length: 50 }, (_, at) => 50 - at));
  });
});

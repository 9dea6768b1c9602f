import { rmSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { readyAsset } from "#test/support/flow.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { run, startServer } from "#test/support/process.ts";

type Report = { ok: boolean; findings: { check: string; ok: boolean; detail: string }[] };

test("doctor finds nothing on an intact server, and names a published object that is missing", async () => {
  const server = await startServer(emptyFolder());
  const { admin } = server;
  const tenant = await server.as({ admin }).createTenant({ name: "T", slug: "t" });
  const issued = await server
    .as({ admin })
    .createApiKey({ tenant_id: tenant.body.id, scopes: ["assets:read", "assets:write"] });
  const { contract } = await readyAsset(server, issued.body.token);
  const doctor = async (...more: string[]) => {
    const { code, stdout } = await run(["admin", "doctor", "--data", server.dataDir, ...more], {
      env: { VODBOX_ADMIN_TOKEN: admin, VODBOX_LOG_LEVEL: "error" },
    });
    return { code, stdout, report: more.includes("--json") ? (JSON.parse(stdout) as Report) : null };
  };
  const sound = await doctor("--json");
  expect(sound).toMatchObject({ code: 0, report: { ok: true } });
  expect(sound.report?.findings.map((finding) => finding.check)).toEqual([
    "database",
    "storage",
    "settings",
    "clock",
    "permissions",
    "disk",
    "workers",
    "ffmpeg",
    "tenants",
    "missing",
    "damaged",
    "unreferenced",
    "server clock",
    "integrity",
  ]);

  const lost = contract.outputs.manifest_path;
  rmSync(join(server.dataDir, "objects", lost));
  const faulty = await doctor("--json");
  expect(faulty).toMatchObject({ code: 1, report: { ok: false } });
  const [fault, ...others] = faulty.report?.findings.filter((finding) => !finding.ok) ?? [];
  expect([fault?.check, others]).toEqual(["missing", []]);
  expect(fault?.detail).toContain(`asset ${contract.job.asset_id}: ${lost}`);

  server.child.kill("SIGTERM");
  await server.ended;
  const table = await doctor();
  expect(table.code).toBe(1);
  expect(table.stdout).toMatch(/^FAULT +missing +1 of \d+ objects referenced by the database are missing/m);
  expect(table.stdout).toMatch(/^ok +integrity/m);
  expect((await doctor("--ffmpeg", "/nowhere/ffmpeg", "--json")).report?.findings).toContainEqual({
    check: "ffmpeg",
    ok: false,
    fixed: 0,
    detail: expect.stringContaining("/nowhere/ffmpeg"),
  });
});

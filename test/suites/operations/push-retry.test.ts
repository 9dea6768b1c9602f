import { randomBytes } from "node:crypto";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { refused } from "#test/support/commands/outcome.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { lineOf, run, startServer, vodbox } from "#test/support/process.ts";

async function scene() {
  const folder = emptyFolder();
  const dataDir = join(folder, "data");
  const server = await startServer(dataDir);
  const { admin, as } = server;
  const tenant = await as({ admin }).createTenant({ name: "Push", slug: "push" });
  const scopes = ["assets:read", "assets:write"];
  const issued = await as({ admin }).createApiKey({ tenant_id: tenant.body.id, scopes });
  const key = issued.body.token as string;
  const inbox = join(folder, "recordings");
  mkdirSync(inbox);
  const appear = (name: string) => {
    const path = join(inbox, name);
    writeFileSync(path, randomBytes(5000));
    return path;
  };
  const env = { VODBOX_SERVER: server.base, VODBOX_KEY: key, VODBOX_CACHE_DIR: join(folder, "cache") };
  return { folder, dataDir, server, key, inbox, appear, env };
}

test("--wait waits for a server that is unavailable at the start, reports it, and ends immediately on a refusal", async () => {
  const { dataDir, server, key, appear, env } = await scene();
  const path = appear("one.mp4");
  const port = new URL(server.base).port;
  server.child.kill("SIGTERM");
  await server.ended;
  expect(await refused(["push", path], 1, { env })).toMatch(/is not responding \(ECONNREFUSED\)/);
  const impatient = await run(["push", path, "--wait", "1s"], { env });
  expect(impatient.code).toBe(1);
  expect(impatient.stderr).toMatch(/^vodbox: .*ECONNREFUSED\); retrying until [\dT:-]+Z\.\n.*is not responding/);
  expect(await refused(["push", path, "--wait", "soon"], 2, { env })).toMatch(/--wait soon is not a duration/);
  const pushing = vodbox(["push", path, "--wait", "5m", "--json"], { env });
  const mistaken = vodbox(["push", path, "--wait", "5m"], { env: { ...env, VODBOX_KEY: "svc_wrong" } });
  for (const each of [pushing, mistaken])
    await expect.poll(() => each.stderr(), { timeout: 30_000 }).toMatch(/ECONNREFUSED\); retrying until/);
  const again = await startServer(dataDir, { args: ["--port", port] });
  const ended = await pushing.ended;
  expect(ended, ended.stderr).toMatchObject({ code: 0 });
  const [{ asset_id }] = JSON.parse(ended.stdout);
  expect((await again.as(key).getAsset(asset_id)).body.input_status).toBe("uploaded");
  const refusal = await mistaken.ended;
  expect(refusal.code).toBe(1);
  expect(refusal.stderr).toMatch(/The API key is missing, unknown, revoked or expired/);
});

test("--watch uploads what plain pushes have missed, and nothing that they delivered", async () => {
  const { folder, server, key, inbox, appear, env } = await scene();
  const delivered = appear("delivered.mp4");
  expect(await run(["push", delivered], { env })).toMatchObject({ code: 0 });
  appear("missed.mp4");
  const otherName = join(folder, "by-another-name");
  symlinkSync(inbox, otherName);
  for (const [watched, expected] of [
    [inbox, "missed.mp4"],
    [otherName, "later.mp4"],
  ] as const) {
    if (expected === "later.mp4") appear(expected);
    const watching = vodbox(["push", "--watch", watched, "--json"], { env });
    await lineOf(watching, new RegExp(`${expected}"`));
    watching.child.kill("SIGINT");
    const { code, stdout } = await watching.ended;
    expect([code, stdout.trim().split("\n").length]).toEqual([130, 1]);
  }
  const titles = async () =>
    (await server.as(key).listAssets()).body.map(({ title }: { title: string }) => title).sort();
  expect(await titles()).toEqual(["delivered", "later", "missed"]);
  // A file that is given again is intended.
  expect(await run(["push", delivered], { env })).toMatchObject({ code: 0 });
  expect(await titles()).toEqual(["delivered", "delivered", "later", "missed"]);
});

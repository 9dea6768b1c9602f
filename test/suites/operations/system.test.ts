import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { rows } from "#test/support/amount.ts";
import { expectError } from "#test/support/error.ts";
import { openStream } from "#test/support/event-stream.ts";
import { atEnd, emptyFolder } from "#test/support/folder.ts";
import { lineOf, type RunningServer, startServer } from "#test/support/process.ts";

const logs = "/api/v1/admin/logs/stream";

async function keyOf({ as, admin }: RunningServer): Promise<string> {
  const tenant = (await as({ admin }).createTenant({ name: "T", slug: "t" })).body;
  return (await as({ admin }).createApiKey({ tenant_id: tenant.id })).body.token;
}

describe.each(rows([2, 1], 1))("with %i processes", (processes) => {
  let server: RunningServer;
  beforeAll(async () => {
    const env = {
      VODBOX_TRANSLATE_URL: "https://user:hidden-password@translate.example/?x=1",
      VODBOX_LOG_LEVEL: "debug",
      VODBOX_LOG_FORMAT: "json",
    };
    server = await startServer(join(emptyFolder(), "data"), { args: ["--processes", String(processes)], env });
    await lineOf(server, /^listening on \S+$/m);
  });
  afterAll(async () => {
    server?.child.kill("SIGTERM");
    await server?.ended;
  });

  test("the operator sees the server, its settings and their sources, and nothing secret", async () => {
    const { as, admin, dataDir } = server;
    const system = await as({ admin }).getSystem();
    expect(system.body).toMatchObject({ processes, data_dir: dataDir, storage: "local", node: expect.any(String) });
    expect(system.body.database_bytes).toBeGreaterThan(100_000);
    expect(system.body.disk.free_bytes).toBeLessThan(system.body.disk.size_bytes);
    expect(Math.abs(Date.parse(system.body.started_at) - Date.now())).toBeLessThan(60_000);
    const { body, text } = await as({ admin }).listSettings();
    const setting = (name: string) => body.settings.find((one) => one.setting === name);
    expect(setting("log_level")).toMatchObject({ value: "debug", origin: "environment", about: expect.any(String) });
    expect(setting("processes")).toMatchObject({ value: String(processes), origin: "flag" });
    expect(setting("admin_token")).toMatchObject({ value: "********" });
    expect(text).not.toContain(admin);
    expect(text).not.toContain("hidden-password");
  });

  test("figures of the last hour are sampled", async () => {
    const { as, call, admin } = server;
    const asked = 30;
    for (let count = 0; count < asked; count++) await as({ admin }).listTenants();
    const history = () => call("GET", "/api/v1/admin/system/history", { admin });
    const total = async (name: string) =>
      (await history()).body.samples.reduce((sum: number, sample: any) => sum + sample[name], 0);
    await expect.poll(() => total("requests"), { timeout: 40_000, interval: 500 }).toBeGreaterThanOrEqual(asked);
    const { interval_seconds, samples } = (await history()).body;
    expect(interval_seconds).toBe(15);
    const last = samples.at(-1);
    expect(Date.parse(last.at) % (interval_seconds * 1000)).toBe(0);
    expect(last).toMatchObject({ errors: 0, jobs_queued: 0, jobs_running: 0, egress_bytes: 0 });
    expect(last.memory_bytes).toBeGreaterThan(processes * 30e6);
    expect(last.cpu_seconds).toBeGreaterThan(0);
    expect(last.event_loop_busy).toBeGreaterThan(0);
    expect(last.event_loop_busy).toBeLessThanOrEqual(1);
    expect(last.disk_free_bytes).toBeGreaterThan(1e6);
  });

  test("the log is followed as it is written, from a level on", async () => {
    const { as, admin, base } = server;
    const key = await keyOf(server);
    const all = await openStream(`${base}${logs}?level=debug`, { "x-svc-admin-token": admin });
    const grave = await openStream(`${base}${logs}?level=error`, { "x-svc-admin-token": admin });
    atEnd(() => [all.close(), grave.close()]);
    const started = () => all.messages.filter(({ data }) => data.msg === "serving");
    await expect.poll(() => new Set(started().map(({ data }) => data.process ?? 0)).size).toBe(processes);
    const asked = 20;
    const linesOf = (route: string) => all.messages.filter(({ data }) => data.route === route);
    for (let id = 1; id <= asked; id++) expectError(await as(key).getAsset(id), 404, "not_found");
    const assets = () => linesOf("/api/v1/assets/:id");
    await expect.poll(() => assets().length).toBeGreaterThanOrEqual(asked);
    expect(assets()[0]).toMatchObject({ event: "line", data: { level: "debug", msg: "request", status: 404 } });
    // Sent with a later batch of lines, which repeats none of the first.
    expectError(await as(key).getCollection(1), 404, "not_found");
    await expect.poll(() => linesOf("/api/v1/collections/:id").length).toBe(1);
    expect(assets()).toHaveLength(asked);
    expect(grave.messages).toEqual([]);
    expectError(await as(key).streamLog(), 401, "unauthorized");
    expectError(await as({ admin }).streamLog({ level: "loud" }), 422, "validation_failed");
  });
});

import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "csv-parse/sync";
import { expect, test, vi } from "vitest";
import { emptyFolder } from "#test/support/folder.ts";
import { startStandIn } from "#test/support/import/stand-in.ts";
import { startServer, tenantKey, vodbox } from "#test/support/process.ts";

vi.setConfig({ testTimeout: 900_000 });

const MIB = 2 ** 20;
const env = { VODBOX_RATE_LIMIT_UPLOADS: "100000/60" };

/** Assets of Mux's API, as many as `count`, in pages of a hundred. */
const library = (count: number) =>
  startStandIn(({ path, query }) => {
    if (path !== "/video/v1/assets") return null;
    const from = Number(query.get("cursor") ?? 0);
    const data = Array.from({ length: Math.min(100, count - from) }, (_, index) => ({
      id: `asset${from + index}`,
      status: "ready",
      created_at: "1577934245",
      duration: 2,
      meta: { title: `Film ${from + index} ${"about it ".repeat(20)}` },
      playback_ids: [{ id: `play${from + index}`, policy: "public" }],
      tracks: [{ type: "video", id: "v" }],
    }));
    return { data, next_cursor: from + 100 < count ? String(from + 100) : null };
  });

test("10,000 videos are listed and planned at 20 a second, in as much memory as 500", async () => {
  const server = await startServer(join(emptyFolder(), "data"), { env });
  const key = await tenantKey(server);
  /** Plans an import of so many. The peak is that of the process, in bytes. */
  const planned = async (count: number) => {
    const standIn = await library(count);
    const variables = {
      VODBOX_SERVER: server.base,
      VODBOX_KEY: key,
      VODBOX_IMPORT_API_URL: standIn.api,
      MUX_TOKEN_ID: "id",
      MUX_TOKEN_SECRET: "secret",
    };
    const from = performance.now();
    const { child, ended } = vodbox(["import", "mux", "--dry-run"], { env: variables, cwd: emptyFolder() });
    let peak = 0;
    const watching = setInterval(() => {
      const path = `/proc/${child.pid}/status`;
      const found = existsSync(path) ? /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(path, "utf8")) : null;
      if (found) peak = Math.max(peak, Number(found[1]) * 1024);
    }, 20);
    const { code, stdout, stderr } = await ended;
    clearInterval(watching);
    expect(code, stderr).toBe(0);
    expect(stdout).toContain(`${count} of ${count} videos to import`);
    return { seconds: (performance.now() - from) / 1000, peak };
  };
  const few = await planned(500);
  const many = await planned(10_000);
  console.info(
    `10,000 videos: ${Math.round(10_000 / many.seconds)} a second, ${Math.round(many.peak / MIB)} MiB; 500: ${Math.round(few.peak / MIB)} MiB`,
  );
  expect(10_000 / many.seconds).toBeGreaterThan(20);
  expect(many.peak - few.peak).toBeLessThan(48 * MIB);
});

test("an import that is killed twenty times has each video once, and all of them", async () => {
  const KILLS = 20;
  const PER_KILL = 3;
  const count = (KILLS + 1) * PER_KILL;
  const cwd = emptyFolder();
  const server = await startServer(join(cwd, "data"), { env });
  const key = await tenantKey(server);
  const videos = join(cwd, "videos");
  mkdirSync(videos);
  const name = (at: number) => `film ${String(at).padStart(3, "0")}.mp4`;
  for (let at = 0; at < count; at++) writeFileSync(join(videos, name(at)), Buffer.alloc(20_000 + at, `${at} `));
  const variables = { VODBOX_SERVER: server.base, VODBOX_KEY: key, VODBOX_CACHE_DIR: join(cwd, "cache") };
  const call = ["import", "folder", videos, "--no-wait"];
  const imported = async () => (await server.as(key).listAssets({ limit: 500 })).body;
  for (let kill = 1; kill <= KILLS; kill++) {
    const { child, ended } = vodbox(call, { env: variables, cwd });
    const outcome = ended.then(({ code, stderr }) => `ended with ${code}: ${stderr}`);
    const reached = expect.poll(async () => (await imported()).length, { timeout: 120_000, interval: 5 });
    // Another moment of an item each time.
    await Promise.race([reached.toBeGreaterThanOrEqual(kill * PER_KILL - (kill % PER_KILL)), outcome]);
    child.kill("SIGKILL");
    await ended;
  }
  const { code, stderr } = await vodbox(call, { env: variables, cwd }).ended;
  expect(code, stderr).toBe(0);
  const assets = await imported();
  const names = Array.from({ length: count }, (_, at) => name(at));
  expect(assets.map(({ original_filename }) => original_filename).sort()).toEqual(names);
  for (const asset of assets)
    expect(asset).toMatchObject({
      input_status: "uploaded",
      source_bytes: 20_000 + names.indexOf(asset.original_filename),
    });
  const rows: Record<string, string>[] = parse(readFileSync(join(cwd, "vodbox-import-folder.csv")), { columns: true });
  expect(rows.map(({ asset_id }) => Number(asset_id)).sort()).toEqual(assets.map(({ id }) => id).sort());
});

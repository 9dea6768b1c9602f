import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "csv-parse/sync";
import { expect, test, vi } from "vitest";
import { emptyFolder } from "#test/support/folder.ts";
import { importCommand } from "#test/support/import/command.ts";
import { manyVideos } from "#test/support/import/library.ts";
import { PROVIDERS, type StandInProvider } from "#test/support/import/providers.ts";
import { startServer, tenantKey, vodbox } from "#test/support/process.ts";

vi.setConfig({ testTimeout: 900_000 });

const MIB = 2 ** 20;
const env = { VODBOX_RATE_LIMIT_UPLOADS: "100000/60" };

const FOLDER = { name: "folder" };
const SOURCES: (StandInProvider | typeof FOLDER)[] = [...PROVIDERS, FOLDER];

/** How `vodbox import` is called for so many videos of a source. */
async function importOf(source: StandInProvider | typeof FOLDER, count: number) {
  const videos = manyVideos(count);
  if ("routes" in source) return importCommand(source, { videos, pageSize: 100 });
  const folder = emptyFolder();
  for (const { id, content } of videos) writeFileSync(join(folder, `${id}.mp4`), content);
  return { args: ["import", "folder", folder], env: {} };
}

test.each(SOURCES)(
  "10,000 videos of $name are listed and planned at 20 a second, in as much memory as 500",
  async (source) => {
    const server = await startServer(join(emptyFolder(), "data"), { env });
    const target = { VODBOX_SERVER: server.base, VODBOX_KEY: await tenantKey(server) };
    /** Plans an import of so many. The peak is that of the process, in bytes. */
    const planned = async (count: number) => {
      const { args, env: variables } = await importOf(source, count);
      const from = performance.now();
      // With a small young generation, what is garbage is collected soon, and the peak is what the command keeps.
      const bounded = { ...target, ...variables, NODE_OPTIONS: "--max-semi-space-size=1" };
      const { child, ended } = vodbox([...args, "--dry-run"], { env: bounded, cwd: emptyFolder() });
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
      `${source.name}, 10,000 videos: ${Math.round(10_000 / many.seconds)} a second, ${Math.round(many.peak / MIB)} MiB; 500: ${Math.round(few.peak / MIB)} MiB`,
    );
    expect(10_000 / many.seconds).toBeGreaterThan(20);
    expect(many.peak - few.peak).toBeLessThan(32 * MIB);
  },
);

test.each(SOURCES)(
  "an import from $name that is killed twenty times has each video once, and all of them",
  async (source) => {
    const KILLS = 20;
    const PER_KILL = 3;
    const cwd = emptyFolder();
    const server = await startServer(join(cwd, "data"), { env });
    const key = await tenantKey(server);
    const count = (KILLS + 1) * PER_KILL;
    const { args, env: variables } = await importOf(source, count);
    const target = { VODBOX_SERVER: server.base, VODBOX_KEY: key, VODBOX_CACHE_DIR: join(cwd, "cache") };
    const run = () => vodbox([...args, "--no-wait"], { env: { ...target, ...variables }, cwd });
    const imported = async () => (await server.as(key).listAssets({ limit: 500 })).body;
    for (let kill = 1; kill <= KILLS; kill++) {
      const { child, ended } = run();
      const outcome = ended.then(({ code, stderr }) => `ended with ${code}: ${stderr}`);
      const reached = expect.poll(async () => (await imported()).length, { timeout: 120_000, interval: 5 });
      // Another moment of an item each time.
      await Promise.race([reached.toBeGreaterThanOrEqual(kill * PER_KILL - (kill % PER_KILL)), outcome]);
      child.kill("SIGKILL");
      await ended;
    }
    const { code, stderr } = await run().ended;
    expect(code, stderr).toBe(0);
    const assets = await imported();
    const ids = manyVideos(count).map(({ id }) => (["folder", "s3"].includes(source.name) ? `${id}.mp4` : id));
    expect(assets.map(({ tags }) => (tags as Record<string, string>).source_id).sort()).toEqual(ids.sort());
    for (const asset of assets) expect(asset).toMatchObject({ input_status: "uploaded", source_bytes: 64 });
    const report = readFileSync(join(cwd, `vodbox-import-${source.name}.csv`));
    const rows: Record<string, string>[] = parse(report, { columns: true });
    expect(rows.map(({ asset_id }) => Number(asset_id)).sort()).toEqual(assets.map(({ id }) => id).sort());
  },
);

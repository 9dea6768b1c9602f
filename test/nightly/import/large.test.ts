import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "csv-parse/sync";
import { expect, test, vi } from "vitest";
import { emptyFolder } from "#test/support/folder.ts";
import { manyVideos } from "#test/support/import/library.ts";
import { PROVIDERS } from "#test/support/import/providers.ts";
import { startStandIn } from "#test/support/import/stand-in.ts";
import { startServer, tenantKey, vodbox } from "#test/support/process.ts";

vi.setConfig({ testTimeout: 900_000 });

const MIB = 2 ** 20;
const env = { VODBOX_RATE_LIMIT_UPLOADS: "100000/60" };

/** A folder of files with 64 bytes, as many as `count`. */
function folderOf(count: number): string {
  const folder = emptyFolder();
  for (const { id, content } of manyVideos(count)) writeFileSync(join(folder, `${id}.mp4`), content);
  return folder;
}

test.each([...PROVIDERS, { name: "folder" }])(
  "10,000 videos of $name are listed and planned at 20 a second, in as much memory as 500",
  async (provider) => {
    const server = await startServer(join(emptyFolder(), "data"), { env });
    const key = await tenantKey(server);
    /** Plans an import of so many. The peak is that of the process, in bytes. */
    const planned = async (count: number) => {
      let args = ["import", provider.name, "--dry-run"];
      let variables: Record<string, string> = { VODBOX_SERVER: server.base, VODBOX_KEY: key };
      if ("routes" in provider) {
        const library = { videos: manyVideos(count), pageSize: 100 };
        const standIn = await startStandIn(provider.routes, provider.isAllowed, library);
        args = [...args, ...provider.args];
        variables = { ...variables, ...provider.env(standIn), VODBOX_IMPORT_API_URL: standIn.api };
      } else args.push(folderOf(count));
      const from = performance.now();
      const { child, ended } = vodbox(args, { env: variables, cwd: emptyFolder() });
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
      `${provider.name}, 10,000 videos: ${Math.round(10_000 / many.seconds)} a second, ${Math.round(many.peak / MIB)} MiB; 500: ${Math.round(few.peak / MIB)} MiB`,
    );
    expect(10_000 / many.seconds).toBeGreaterThan(20);
    expect(many.peak - few.peak).toBeLessThan(48 * MIB);
  },
);

test.each([...PROVIDERS, { name: "folder" }])(
  "an import from $name that is killed twenty times has each video once, and all of them",
  async (provider) => {
    const KILLS = 20;
    const PER_KILL = 3;
    const cwd = emptyFolder();
    const server = await startServer(join(cwd, "data"), { env });
    const key = await tenantKey(server);
    const library = manyVideos((KILLS + 1) * PER_KILL);
    const args = ["import", provider.name, "--no-wait"];
    let variables: Record<string, string> = { VODBOX_SERVER: server.base, VODBOX_KEY: key };
    if ("routes" in provider) {
      const standIn = await startStandIn(provider.routes, provider.isAllowed, { videos: library, pageSize: 100 });
      args.push(...provider.args);
      variables = { ...variables, ...provider.env(standIn), VODBOX_IMPORT_API_URL: standIn.api };
    } else args.push(folderOf(library.length));
    const own = { VODBOX_CACHE_DIR: join(cwd, "cache") };
    const imported = async () => (await server.as(key).listAssets({ limit: 500 })).body;
    for (let kill = 1; kill <= KILLS; kill++) {
      const { child, ended } = vodbox(args, { env: { ...variables, ...own }, cwd });
      const outcome = ended.then(({ code, stderr }) => `ended with ${code}: ${stderr}`);
      const reached = expect.poll(async () => (await imported()).length, { timeout: 120_000, interval: 5 });
      // Another moment of an item each time.
      await Promise.race([reached.toBeGreaterThanOrEqual(kill * PER_KILL - (kill % PER_KILL)), outcome]);
      child.kill("SIGKILL");
      await ended;
    }
    const { code, stderr } = await vodbox(args, { env: { ...variables, ...own }, cwd }).ended;
    expect(code, stderr).toBe(0);
    const assets = await imported();
    const idOf = ({ id }: { id: string }) => (provider.name === "folder" || provider.name === "s3" ? `${id}.mp4` : id);
    expect(assets.map(({ tags }) => (tags as Record<string, string>).source_id).sort()).toEqual(
      library.map(idOf).sort(),
    );
    for (const asset of assets) expect(asset).toMatchObject({ input_status: "uploaded", source_bytes: 64 });
    const report = readFileSync(join(cwd, `vodbox-import-${provider.name}.csv`));
    const rows: Record<string, string>[] = parse(report, { columns: true });
    expect(rows.map(({ asset_id }) => Number(asset_id)).sort()).toEqual(assets.map(({ id }) => id).sort());
  },
);

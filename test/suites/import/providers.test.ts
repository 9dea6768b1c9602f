import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { parse } from "csv-parse/sync";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { emptyFolder, newFolder, removeFolder } from "#test/support/folder.ts";
import { importCommand } from "#test/support/import/command.ts";
import { CREATED, LIBRARY } from "#test/support/import/library.ts";
import { PROVIDERS, SECRET, type StandInProvider } from "#test/support/import/providers.ts";
import { type RunningServer, run, startServer, vodbox } from "#test/support/process.ts";

let server: RunningServer;
const folder = newFolder();
beforeAll(async () => {
  server = await startServer(join(folder, "data"), { env: { VODBOX_RATE_LIMIT_UPLOADS: "10000/60" } });
  return async () => {
    server.child.kill("SIGKILL");
    await server.ended;
  };
});
afterAll(() => removeFolder(folder));

/** A new tenant with a key, and how `vodbox import` is called for a provider. */
async function scene(provider: StandInProvider) {
  const { name } = provider;
  const { admin } = server;
  const tenant = await server.as({ admin }).createTenant({ name, slug: name });
  const scopes = ["assets:read", "assets:write", "playback:read"];
  const issued = await server.as({ admin }).createApiKey({ tenant_id: tenant.body.id, scopes });
  const key = issued.body.token as string;
  const command = await importCommand(provider);
  const cwd = emptyFolder();
  const env = {
    VODBOX_SERVER: server.base,
    VODBOX_KEY: key,
    VODBOX_CACHE_DIR: join(cwd, "..", `${name}-cache`),
    ...command.env,
  };
  const call = [...command.args, "--no-wait"];
  const assets = async () => (await server.as(key).listAssets({ sort: "oldest" })).body;
  return { standIn: command.standIn, cwd, env, call, assets, key };
}

describe.each(PROVIDERS)("import from $name", (provider) => {
  const { name, hasChapters = false } = provider;
  const idOf = (at: number) => `${LIBRARY[at]?.id}${name === "s3" ? ".mp4" : ""}`;

  test("continues after SIGKILL, through limits, expired URLs and missing files, without duplicates", async () => {
    const { standIn, cwd, env, call, assets, key } = await scene(provider);
    standIn.faults.push(
      { status: 429, headers: { "retry-after": "0" } },
      { status: 429, headers: { "retry-after": new Date(0).toUTCString() } },
      { status: 503 },
    );
    const held = standIn.hold();
    const first = vodbox(call, { env, cwd });
    await Promise.race([held, first.ended.then(({ stderr }) => Promise.reject(new Error(stderr)))]);
    // Half of it is on the disk.
    const parts = join(cwd, `vodbox-import-${name}.parts`);
    const half = (LIBRARY[4]?.content.length ?? 0) / 2;
    await expect
      .poll(() => readdirSync(parts).map((file) => statSync(join(parts, file)).size), { timeout: 30_000 })
      .toContain(Math.floor(half));
    first.child.kill("SIGKILL");
    await first.ended;
    standIn.release();
    const { code, stdout, stderr } = await run([...call, "--json"], { env, cwd });
    expect(code, stderr).toBe(1);
    const report = JSON.parse(stdout);
    expect(report).toMatchObject({ videos: LIBRARY.length, failed: 1, error: null });
    expect(report.failures).toEqual([expect.objectContaining({ source_id: idOf(2), reason: expect.any(String) })]);
    const [second, killed] = (await server.as(key).listImportRuns()).body;
    expect(killed).toMatchObject({ provider: name, status: "running", total: LIBRARY.length });
    expect(second).toMatchObject({ status: "failed", failed: 1, problem_count: 1, total: LIBRARY.length });
    const { problems } = (await server.as(key).getImportRun(second.id)).body;
    expect(problems).toEqual(report.failures);
    // The rest of the file, not all of it again.
    const slow = standIn.seen.filter(({ path, headers }) => path.includes(LIBRARY[4]?.id as string) && headers.range);
    expect(slow.at(-1)?.headers).toMatchObject({ "if-range": '"v1"' });

    const imported = await assets();
    expect(imported.map(({ tags }) => tags.source_id).sort()).toEqual([0, 1, 3, 4].map(idOf).sort());
    for (const asset of imported) {
      const video = LIBRARY.find((_, at) => idOf(at) === asset.tags.source_id);
      expect(asset).toMatchObject({ input_status: "uploaded", source_bytes: video?.content.length });
      expect(asset.tags).toMatchObject({
        source_provider: name,
        source_created_at: expect.stringMatching(/^2020-01-02T03:04:0/),
      });
      if (name !== "s3")
        expect(asset).toMatchObject({ title: video?.title, playback_policy: video?.isPublic ? "public" : "signed" });
      const subtitles = (await server.as(key).listSubtitles(asset.id)).body;
      expect(subtitles.map(({ language }) => language).sort()).toEqual(video?.captions);
      // The only provider that says it.
      const role = name === "mux" ? "caption" : "subtitle";
      expect(subtitles.map((subtitle) => subtitle.role)).toEqual(subtitles.map(() => role));
      const tracks = (await server.as(key).listTracks(asset.id, { kind: "chapter" })).body;
      expect(tracks.flatMap(({ cues }) => cues.map((cue: any) => [cue.start_ms, cue.payload.title]))).toEqual(
        hasChapters
          ? [
              [0, "One"],
              [1000, "Two"],
            ]
          : [],
      );
    }
    // Parallel transfers end in any order.
    const oldest = imported.find(({ tags }) => tags.source_id === idOf(0));
    expect(oldest?.tags.source_created_at).toBe(CREATED);

    const rows: Record<string, string>[] = parse(readFileSync(join(cwd, `vodbox-import-${name}.csv`)), {
      columns: true,
    });
    expect(rows.map(({ source_id, asset_id }) => [source_id, Number(asset_id)]).sort()).toEqual(
      imported.map(({ tags, id }) => [tags.source_id, id]).sort(),
    );
    // Credentials are neither sent to another origin nor written anywhere.
    expect(JSON.stringify(standIn.seen)).not.toMatch(/authorization|accesskey|s3cret/i);
    const written = readdirSync(cwd).map((file) => readFileSync(join(cwd, file), "utf8"));
    for (const text of [stdout, stderr, first.stderr(), ...written]) {
      expect(text).not.toContain(SECRET);
      expect(text).not.toContain(Buffer.from(`id:${SECRET}`).toString("base64"));
    }
  });
});

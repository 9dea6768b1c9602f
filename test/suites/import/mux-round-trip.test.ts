import { cpSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { emptyFolder } from "#test/support/folder.ts";
import { CAPTION } from "#test/support/import/library.ts";
import { fast, ffmpeg, picture, sound } from "#test/support/media/sources.ts";
import { run, startServer, tenantKey } from "#test/support/process.ts";

test("an import from the Mux API of vodbox takes the originals, with what belongs to them", {
  timeout: 600_000,
}, async () => {
  const cwd = emptyFolder();
  const server = await startServer(join(cwd, "data"), { args: ["--workers", "1"] });
  const key = await tenantKey(server);
  const videos = join(cwd, "videos");
  mkdirSync(videos);
  await ffmpeg(...picture("64x36", "5", 2), ...sound(2), ...fast, "-c:a", "aac", join(videos, "open.mp4"));
  cpSync(join(videos, "open.mp4"), join(videos, "closed.mp4"));
  writeFileSync(join(videos, "open.pt-BR.vtt"), CAPTION);
  const about = { title: "Open, =“film”", tags: { external_id: "own-1", passthrough: "p" }, privacy: "public" };
  writeFileSync(join(videos, "open.json"), JSON.stringify(about));
  writeFileSync(join(videos, "closed.json"), JSON.stringify({ privacy: "private" }));
  const env = { VODBOX_SERVER: server.base, VODBOX_KEY: key, VODBOX_CACHE_DIR: join(cwd, "cache") };
  const first = await run(["import", "folder", videos, "--json"], { env, cwd });
  expect(first.code, first.stdout + first.stderr).toBe(0);
  const sources = (await server.as(key).listAssets({ sort: "oldest" })).body;

  const target = await server.as({ admin: server.admin }).createTenant({ name: "Target", slug: "target" });
  const scopes = ["assets:read", "assets:write", "playback:read"];
  const issued = await server.as({ admin: server.admin }).createApiKey({ tenant_id: target.body.id, scopes });
  const own = issued.body.token as string;
  const moving = {
    ...env,
    VODBOX_KEY: own,
    VODBOX_IMPORT_API_URL: `${server.base}/mux`,
    MUX_TOKEN_ID: "any",
    MUX_TOKEN_SECRET: key,
  };
  const moved = await run(["import", "mux", "--json", "--redirects", "csv"], { env: moving, cwd });
  expect(moved.code, moved.stdout + moved.stderr).toBe(0);
  expect(JSON.parse(moved.stdout)).toMatchObject({ videos: 2, imported: 2, failed: 0, unverified: 0, notes: [] });
  const imported = (await server.as(own).listAssets({ sort: "oldest" })).body;
  const shown = ({ title, playback_policy, source_bytes, playback_status }: (typeof imported)[number]) => ({
    title,
    playback_policy,
    source_bytes,
    playback_status,
  });
  const byTitle = (a: { title: string }, b: { title: string }) => a.title.localeCompare(b.title);
  expect(imported.map(shown).toSorted(byTitle)).toEqual(sources.map(shown).toSorted(byTitle));
  const open = imported.find(({ playback_policy }) => playback_policy === "public");
  expect(open?.tags).toMatchObject({ external_id: "own-1", passthrough: "p", source_provider: "mux" });
  const subtitles = (await server.as(own).listSubtitles(open?.id as number)).body;
  expect(subtitles.map(({ language }) => language)).toEqual(["pt-BR"]);
  const again = await run(["import", "mux", "--json"], { env: moving, cwd });
  expect([again.code, JSON.parse(again.stdout)]).toMatchObject([0, { imported: 0, unchanged: 2 }]);
});

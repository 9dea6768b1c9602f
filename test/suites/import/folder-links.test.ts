import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { emptyFolder } from "#test/support/folder.ts";
import { run, startServer, tenantKey } from "#test/support/process.ts";

test("a symbolic link is followed inside of the imported directory only", async () => {
  const cwd = emptyFolder();
  const server = await startServer(join(cwd, "data"));
  const env = { VODBOX_SERVER: server.base, VODBOX_KEY: await tenantKey(server) };
  const videos = join(cwd, "videos");
  mkdirSync(videos);
  writeFileSync(join(cwd, "secret"), JSON.stringify({ title: "secret of the operator" }));
  writeFileSync(join(videos, "film.mp4"), "a video");
  symlinkSync("film.mp4", join(videos, "inside.mp4"));
  symlinkSync("../secret", join(videos, "film.json"));
  symlinkSync("../secret", join(videos, "outside.mp4"));
  const { stdout, stderr } = await run(["import", "folder", videos, "--dry-run", "--json"], { env, cwd });
  expect(stdout, stderr).not.toContain("secret of the operator");
  const { items } = JSON.parse(stdout);
  const reasons = Object.fromEntries(items.map((item: any) => [item.source_id, JSON.stringify(item)]));
  expect(reasons["film.mp4"]).toMatch(/film\.json: .*symbolic link to a file outside of the directory/);
  expect(reasons["outside.mp4"]).toMatch(/symbolic link to a file outside of the directory/);
  expect(reasons["inside.mp4"]).not.toMatch(/symbolic link/);
});

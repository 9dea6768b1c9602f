import { execFileSync } from "node:child_process";
import { globSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { SCOPES } from "#platform/http/caller.ts";
import { uploaded } from "#test/support/flow.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { startServer, stopCleanly } from "#test/support/process.ts";
import { subtitled } from "#test/support/subtitles.ts";

const TEXT = `WEBVTT\n\n${Array.from({ length: 60 }, (_, at) => `00:00:${String(at).padStart(2, "0")}.000 --> 00:00:${String(at).padStart(2, "0")}.900\nLine ${at}\n`).join("\n")}`;

/** Replaces a stored text in place with the same ETag, which nothing does in production: it shows who answers. */
function replaceText(dataDir: string): void {
  const [path] = globSync(join(dataDir, "objects/**/*.vtt")) as [string];
  const text = readFileSync(path, "utf8");
  execFileSync("cp", ["--preserve=timestamps", path, join(dataDir, "times")]);
  writeFileSync(path, text.replace("Line", "LINE"), { flag: "r+" });
  execFileSync("touch", ["-r", join(dataDir, "times"), path]);
  expect(statSync(path).size).toBe(text.length);
}

test.each([
  ["fs", "Line 0"],
  ["memory", "LINE 0"],
])("with %s a restarted server answers a compressed text with %s", async (cache, expected) => {
  const dataDir = emptyFolder();
  const options = { env: { VODBOX_CACHE: cache } };
  const server = await startServer(dataDir, options);
  const { as, call, admin } = server;
  const { id: tenant_id } = (await as({ admin }).createTenant({ name: "T", slug: "t" })).body;
  const key = (await as({ admin }).createApiKey({ tenant_id, scopes: SCOPES })).body.token;
  const { asset } = await uploaded(server, key, { playback_policy: "public" });
  const { id } = await subtitled(server, key, asset.id, {}, TEXT);
  const path = `/media/${asset.external_id}/subtitles/${id}.vtt`;
  const brotli = { headers: { "accept-encoding": "br" } };
  expect((await call("GET", path, brotli)).text).toContain("Line 0");
  await stopCleanly(server);
  replaceText(dataDir);
  const restarted = await startServer(dataDir, options);
  const answer = await restarted.call("GET", path, brotli);
  expect([answer.status, answer.headers.get("content-encoding")]).toEqual([200, "br"]);
  expect(answer.text).toContain(expected);
});

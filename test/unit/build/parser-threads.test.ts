import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { leased, tiny, tinyAsset } from "#test/support/batches.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { type RunningServer, startServer } from "#test/support/process.ts";

/** Names of the threads of the process (proc(5)), the first 15 characters of each. */
const threadsOf = ({ child }: RunningServer): string[] =>
  readdirSync(`/proc/${child.pid}/task`).map((id) => readFileSync(`/proc/${child.pid}/task/${id}/comm`, "utf8").trim());
const parsers = (server: RunningServer) => threadsOf(server).filter((name) => name === "vodbox-parser");

test("the executable parses documents on threads, which start with the first document", async () => {
  const env = { VODBOX_CACHE_DIR: emptyFolder(), VODBOX_MIN_FREE_BYTES: "0" };
  const server = await startServer(emptyFolder(), { executable: true, env });
  const { admin, as } = server;
  const { body: tenant } = await as({ admin }).createTenant({ name: "T", slug: "t" });
  const body = { tenant_id: tenant.id, scopes: ["assets:read", "assets:write"] };
  const key = (await as({ admin }).createApiKey(body)).body.token;
  const batch = await leased(server, key);
  const mpd = '<MPD type="static"><Period><AdaptationSet><Representation id="a">';
  const template = '<SegmentTemplate media="$Number$" duration="1" endNumber="999999999999999"/>';
  const vtt = "WEBVTT\n\n00:00.000 --> 00:01.000\nHello\n";
  await batch.putAll({
    ...tiny(),
    "en.vtt": vtt,
    "hostile.mpd": `${mpd}${template}</Representation></AdaptationSet></Period></MPD>`,
  });
  expect(parsers(server)).toEqual([]);

  const good = tinyAsset("", { subtitles: [{ language: "en", label: "English", path: "en.vtt" }] });
  const preview = await batch.preview({ assets: [good] });
  expect([preview.body.valid, preview.body.errors]).toEqual([true, []]);
  expect(parsers(server).length).toBeGreaterThan(0);

  const hostile = tinyAsset("", { dash: { manifest_path: "hostile.mpd" } });
  const refused = await batch.preview({ assets: [hostile] });
  expect(refused.body.errors.map(({ code }: { code: string }) => code)).toEqual(["document_too_complex"]);
  const committed = await batch.commit({ assets: [good] });
  expect(committed.status, committed.text).toBe(200);
});

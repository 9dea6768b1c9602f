import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { until } from "#test/support/descendants.ts";
import { uploaded } from "#test/support/flow.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { startServer, tenantKey, vodbox } from "#test/support/process.ts";
import { RECOGNIZER, tones } from "#test/support/tones.ts";

/** A minute without a pause to cut at, then sentences, and a silence in the last part. */
const PAUSES_MS = [
  ...Array<number>(220).fill(50),
  ...Array.from({ length: 140 }, (_, index) => (index === 115 ? 4000 : index % 12 === 11 ? 1200 : 260)),
];
/** What speech recognition times words with. */
const EXACT_MS = 100;

test("workers share the parts of long audio; one that is killed costs its part, and no word is lost or doubled", async () => {
  const folder = emptyFolder();
  const [script, wait, log] = ["recognize.mjs", "wait", "log.txt"].map((name) => join(folder, name)) as [
    ...[string, string, string],
  ];
  const { wav, words } = tones(PAUSES_MS);
  writeFileSync(script, RECOGNIZER);
  writeFileSync(wait, "");
  writeFileSync(log, "");
  const server = await startServer(join(folder, "data"), {
    args: ["--workers", "1"],
    env: { VODBOX_MIN_FREE_BYTES: "0", VODBOX_LEASE_SECONDS: "10" },
  });
  const { as, call } = server;
  const key = await tenantKey(server);
  const { asset } = await uploaded(server, key, { bytes: wav, filename: "talk.wav" });
  const path = `/api/v1/assets/${asset.id}`;
  const get = async (at: string) => (await call("GET", at, { key })).body;
  await until("the asset is ready", async () => (await get(path)).playback_status === "ready", 120_000);

  const work = (name: string) =>
    vodbox(
      ["worker", "--server", server.base, "--token", server.worker, "--scratch", join(folder, `scratch-${name}`)],
      {
        env: {
          VODBOX_TRANSCRIBE: "command",
          VODBOX_TRANSCRIBE_COMMAND: `"${process.execPath}" "${script}"`,
          VODBOX_MIN_FREE_BYTES: "0",
          RECOGNIZER: name,
        },
      },
    );
  const heard = () => readFileSync(log, "utf8").split("\n").filter(Boolean);
  const workers = { first: work("first"), second: work("second") };
  const generate = () => as(key).generateSubtitle(asset.id, { language: "auto" });
  await until("a worker is known", async () => (await generate()).status === 202, 60_000);
  const { job } = (await generate()).body;
  await until("both recognize", () => new Set(heard()).size === 2, 60_000);
  const shown = await get(`/api/v1/caption_jobs/${job.id}`);
  expect(shown).toMatchObject({ status: "running", attempt: 1 });
  expect(shown.parts).toBeGreaterThanOrEqual(3);

  workers.first.child.kill("SIGKILL");
  await workers.first.ended;
  rmSync(wait);
  const track = async () => (await get(`${path}/subtitles`))[0];
  await until("the captions are ready", async () => (await track()).status !== "pending", 120_000);
  expect(await track()).toMatchObject({ language: "en", source: "auto", status: "ready" });
  // One part was recognized twice.
  expect(heard()).toHaveLength(shown.parts + 1);
  const transcript = await get(`${path}/transcript?format=json`);
  const recognized: { text: string; start_ms: number }[] = transcript.words;
  expect(recognized.map(({ text }) => text)).toEqual(words.map(({ text }) => text));
  for (const [index, { start_ms }] of recognized.entries())
    expect(Math.abs(start_ms - (words[index]?.startMs ?? 0))).toBeLessThanOrEqual(EXACT_MS);
  workers.second.child.kill("SIGTERM");
  expect((await workers.second.ended).code).toBe(0);
});

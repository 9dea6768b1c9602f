import { appendFile, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { readCaptions, WrittenCaptions } from "#live/captions/written-captions.ts";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "captions-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const captionOf = (startMs: number, endMs: number, text: string, service = "cc1") => ({
  service,
  startMs,
  endMs,
  text,
  row: 14,
});
async function write(...captions: ReturnType<typeof captionOf>[]): Promise<void> {
  const written = new WrittenCaptions(folder, async () => {});
  for (const caption of captions) written.add(caption);
  await written.settled();
}

test("without a file there are none", async () => {
  expect(await readCaptions(folder)).toEqual([]);
});

test("services are apart, the parts of one caption are one, and a line that was cut is left out", async () => {
  await write(captionOf(0, 1000, "Hello"), captionOf(500, 900, "Hola", "cc3"), captionOf(1000, 1500, "Hello"));
  await appendFile(join(folder, "captions.jsonl"), '{"service":"cc1","sta\n');
  await write(captionOf(4000, 5000, "a < b"));
  expect(await readCaptions(folder)).toEqual([
    {
      service: "cc1",
      language: null,
      vtt: "WEBVTT\n\n00:00:00.000 --> 00:00:01.500\nHello\n\n00:00:04.000 --> 00:00:05.000\na &lt; b\n",
    },
    { service: "cc3", language: null, vtt: "WEBVTT\n\n00:00:00.500 --> 00:00:00.900\nHola\n" },
  ]);
});

test("a range has its own captions, from its beginning", async () => {
  await write(captionOf(0, 1000, "before"), captionOf(1500, 2500, "across"), captionOf(3000, 4000, "after"));
  const [captions] = await readCaptions(folder, { fromMs: 2000, toMs: 3000 });
  expect(captions?.vtt).toBe("WEBVTT\n\n00:00:00.000 --> 00:00:00.500\nacross\n");
});

test("a text over the limit keeps its beginning", async () => {
  const line = "é".repeat(500);
  await write(...Array.from({ length: 2500 }, (_, index) => captionOf(2000 * index, 2000 * index + 1000, line)));
  const [captions] = await readCaptions(folder);
  const bytes = Buffer.byteLength(captions?.vtt ?? "");
  expect(bytes).toBeLessThanOrEqual(2_000_000);
  expect(bytes).toBeGreaterThan(1_990_000);
  expect(captions?.vtt.endsWith(`${line}\n`)).toBe(true);
});

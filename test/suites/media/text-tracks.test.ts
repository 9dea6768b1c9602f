import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { until } from "#test/support/descendants.ts";
import { type UploadFields, uploaded } from "#test/support/flow.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { captionUnit, erase, popOn } from "#test/support/live/closed-captions.ts";
import { writeCaptioned } from "#test/support/media/captioned-source.ts";
import { cuesOf, pairsByFrame } from "#test/support/media/source-captions.ts";
import { fast, ffmpeg, picture, sound } from "#test/support/media/sources.ts";
import { startServer, tenantKey } from "#test/support/process.ts";

const SECONDS = 20;
const folder = emptyFolder();
const at = (name: string) => join(folder, name);

const SRT = `1
00:00:01,500 --> 00:00:03,000
<font color="red">Good</font> <i>morning</i>

2
00:00:12,250 --> 00:00:14,000
Über 3 < 4
zwei Zeilen
`;
const CUES = [
  { start_ms: 1500, end_ms: 3000, text: "Good morning" },
  { start_ms: 12_250, end_ms: 14_000, text: "Über 3 < 4 zwei Zeilen" },
];

beforeAll(async () => {
  writeFileSync(at("a.srt"), SRT);
  const encoder = [...fast, "-g", "30", "-c:a", "aac"];
  const inputs = [...picture("160x90", "10", SECONDS), ...sound(SECONDS), "-i", at("a.srt")];
  const maps = ["-map", "0", "-map", "1", ...Array(3).fill(["-map", "2"]).flat()];
  const flags = [
    ...["-metadata:s:s:0", "language=eng", "-metadata:s:s:0", "title=English, translated"],
    ...["-metadata:s:s:1", "language=eng", "-disposition:s:1", "forced"],
    ...["-metadata:s:s:2", "language=pt-BR", "-disposition:s:2", "hearing_impaired"],
  ];
  await ffmpeg(...inputs, ...maps, ...encoder, "-c:s", "copy", ...flags, at("source.mkv"));
});

/** Encodes a source, and returns the asset and its calls. */
async function encoded(path: string, { parallel = "auto", ...fields }: UploadFields & { parallel?: string } = {}) {
  const server = await startServer(join(emptyFolder(), "data"), {
    args: ["--workers", "1"],
    env: { VODBOX_MIN_FREE_BYTES: "0", VODBOX_PARALLEL: parallel, VODBOX_CHUNK_SECONDS: "8" },
  });
  const key = await tenantKey(server);
  const get = async (path: string) => (await server.call("GET", path, { key })).body;
  const { asset } = await uploaded(server, key, { bytes: readFileSync(path), ...fields });
  const asset_url = `/api/v1/assets/${asset.id}`;
  await until("it is encoded", async () => (await get(asset_url)).encoding_status === "complete", 120_000);
  return { server, key, get, url: asset_url, id: asset.id as number };
}

test.for([
  { parallel: "off", early: false },
  { parallel: "auto", early: false },
  { parallel: "auto", early: true },
])("SubRip tracks of Matroska are subtitles: encoding in parts $parallel, early playback $early", async (options) => {
  const { server, key, get, url } = await encoded(at("source.mkv"), {
    filename: "source.mkv",
    parallel: options.parallel,
    early_playback: options.early,
  });
  const tracks = await get(`${url}/subtitles`);
  expect(tracks).toMatchObject([
    { language: "en", label: "English, translated", source: "upload", status: "ready", is_default: false },
    { language: "en-x-forced", label: "English (forced)" },
    { language: "pt-BR", label: "Português (Brasil) (SDH)" },
  ]);
  expect((await get(url)).warnings).toEqual([]);
  const { cues } = await get(`${url}/transcript?format=json&language=en`);
  expect(cues).toHaveLength(CUES.length);
  for (const [index, { text, start_ms, end_ms }] of CUES.entries()) {
    expect(cues[index].text).toBe(text);
    expect(Math.abs(cues[index].start_ms - start_ms)).toBeLessThan(50);
    expect(Math.abs(cues[index].end_ms - end_ms)).toBeLessThan(50);
  }
  const { hls_url } = await get(`/api/v1/playback/${url.split("/").at(-1)}`);
  expect(await (await fetch(hls_url)).text()).toMatch(/#EXT-X-MEDIA:TYPE=SUBTITLES,.*LANGUAGE="pt-BR"/);

  // What was edited, and what was deleted, stays so.
  const [first, second, third] = tracks;
  await server.call("DELETE", `${url}/subtitles/${second.id}`, { key });
  await server.call("PATCH", `${url}/subtitles/${third.id}`, { key, body: { language: "fr", label: "Mine" } });
  await server.call("POST", `${url}/reencode`, { key, body: {} });
  const jobs = async () => get(`/api/v1/transcoding_jobs?asset_id=${url.split("/").at(-1)}`);
  const isDone = (all: { status: string }[]) => all.every(({ status }) => status === "completed");
  await until("it is encoded again", async () => isDone(await jobs()), 120_000);
  expect(await get(`${url}/subtitles`)).toMatchObject([
    { id: first.id, language: "en" },
    { id: third.id, language: "fr", label: "Mine" },
  ]);
});

test("closed captions and text tracks of one source are all there, also in clips and joined assets", async () => {
  const pairs = pairsByFrame(
    [
      [8000, popOn("SPOKEN")],
      [10_000, erase()],
    ],
    10,
  );
  const captioned = at("captioned.mkv");
  await writeCaptioned(captioned, {
    video: [...picture("160x90", "10", SECONDS), ...fast, "-g", "20", "-bf", "0"],
    units: ({ index }) => captionUnit([pairs.get(index) ?? [0x80, 0x80]]),
  });
  const maps = ["-map", "0:v", "-map", "1:a", "-map", "1:s:0", "-map", "1:s:1"];
  const both = at("both.mkv");
  await ffmpeg("-i", captioned, "-i", at("source.mkv"), ...maps, "-c", "copy", "-metadata:s:s:1", "language=und", both);
  const { server, key, get, url, id } = await encoded(both, { filename: "both.mkv" });
  const textsOf = async (of: string) =>
    ((await get(`${of}/subtitles?include=content`)) as { language: string; label: string; content: string }[]).map(
      ({ language, label, content }) => ({ language, label, cues: cuesOf(content) }),
    );
  /** ffmpeg has moved the text with its audio, by a packet. */
  const cue = (start: number, end: number, text: string) => ({
    start: expect.closeTo(start, 1),
    end: expect.closeTo(end, 1),
    text,
  });
  const morning = (from: number) => cue(1.5 + from, 3 + from, "Good <i>morning</i>");
  const lines = (from: number) => cue(12.25 + from, 14 + from, "Über 3 &lt; 4\nzwei Zeilen");
  // The last pair but one of eleven shows it.
  const spoken = (from: number) => cue(8.9 + from, 10 + from, "SPOKEN");
  const expectTexts = async (of: string, text: unknown[], caption: unknown[]) =>
    expect(await textsOf(of)).toEqual([
      { language: "en", label: "English, translated", cues: text },
      { language: "und-x-forced", label: "Track 4 (forced)", cues: text },
      { language: "und", label: "CC1", cues: caption },
    ]);
  await expectTexts(url, [morning(0), lines(0)], [spoken(0)]);

  const range = { start_seconds: 8, end_seconds: 16 };
  const clip = await server.call("POST", `${url}/clips`, { key, body: range });
  expect(clip.status, clip.text).toBe(201);
  await expectTexts(`/api/v1/assets/${clip.body.id}`, [lines(-8)], [spoken(-8)]);

  const joined = await server.as(key).joinAssets({ asset_ids: [clip.body.id, id] });
  expect(joined.status, joined.text).toBe(201);
  const asset = `/api/v1/assets/${joined.body.id}`;
  await until("they are joined", async () => (await get(asset)).playback_status === "ready", 90_000);
  await expectTexts(asset, [lines(-8), morning(8), lines(8)], [spoken(-8), spoken(8)]);
  expect((await get(asset)).warnings).toEqual([]);
});

test("a server that is killed during the encode has each track once", async () => {
  const data = join(emptyFolder(), "data");
  const options = {
    args: ["--workers", "1"],
    env: { VODBOX_MIN_FREE_BYTES: "0", VODBOX_CHUNK_SECONDS: "8", VODBOX_LEASE_SECONDS: "5" },
  };
  const first = await startServer(data, options);
  const key = await tenantKey(first);
  const { asset } = await uploaded(first, key, { bytes: readFileSync(at("source.mkv")), filename: "source.mkv" });
  const path = `/api/v1/assets/${asset.id}`;
  await until("it is being encoded", async () => {
    const [job] = (await first.as(key).listJobs({ asset_id: asset.id })).body;
    return job.status === "completed" || job.tasks?.completed > 1;
  });
  first.child.kill("SIGKILL");
  await first.ended;
  const second = await startServer(data, options);
  const get = async (of: string) => (await second.call("GET", of, { key })).body;
  await until("it is encoded", async () => (await get(path)).encoding_status === "complete", 120_000);
  const languages = (await get(`${path}/subtitles`)).map(({ language }: { language: string }) => language);
  expect(languages).toEqual(["en", "en-x-forced", "pt-BR"]);
});

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { until } from "#test/support/descendants.ts";
import { uploaded } from "#test/support/flow.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { captionUnit, erase, type Pair, popOn } from "#test/support/live/closed-captions.ts";
import { writeCaptioned } from "#test/support/media/captioned-source.ts";
import { pairsByFrame } from "#test/support/media/source-captions.ts";
import { fast, ffmpeg, picture, sound } from "#test/support/media/sources.ts";
import { startServer, tenantKey } from "#test/support/process.ts";

const RATE = 30;
const SECONDS = 18;
const NOTHING: Pair = [0x80, 0x80];

const LINES = pairsByFrame([
  [500, popOn("HELLO")],
  [3000, erase()],
  [10_500, popOn("AGAIN")],
  [13_000, erase()],
]);
/** In seconds: the last pair of a command shows and erases. */
const SHOWN = [
  [0.7, 3, "HELLO"],
  [10.7, 13, "AGAIN"],
] as const;

async function writeSource(path: string, { hasAudio }: { hasAudio: boolean }): Promise<void> {
  const captioned = `${path}.mkv`;
  const encoder = [...fast, "-bf", "2", "-b_strategy", "0", "-g", "30", "-sc_threshold", "0"];
  await writeCaptioned(captioned, {
    video: [...picture("64x36", String(RATE), SECONDS), ...encoder],
    units: ({ index }) => captionUnit([LINES.get(index) ?? NOTHING]),
  });
  const audio = hasAudio ? [...sound(SECONDS), "-map", "0:v", "-map", "1:a"] : [];
  await ffmpeg("-i", captioned, ...audio, "-c:v", "copy", path);
}

test.for([
  { parallel: "off", hasAudio: true, early: false },
  { parallel: "auto", hasAudio: true, early: false },
  { parallel: "auto", hasAudio: false, early: false },
  { parallel: "auto", hasAudio: false, early: true },
  { parallel: "auto", hasAudio: true, early: true },
])(
  "closed captions of an upload are its subtitle: encoding in parts $parallel, audio $hasAudio, early playback $early",
  async ({ parallel, hasAudio, early }) => {
    const folder = emptyFolder();
    const server = await startServer(join(folder, "data"), {
      args: ["--workers", "1"],
      env: { VODBOX_MIN_FREE_BYTES: "0", VODBOX_PARALLEL: parallel, VODBOX_CHUNK_SECONDS: "8" },
    });
    const key = await tenantKey(server);
    const get = async (path: string) => (await server.call("GET", path, { key })).body;
    const path = join(folder, "source.mp4");
    await writeSource(path, { hasAudio });
    const { asset } = await uploaded(server, key, { bytes: readFileSync(path), early_playback: early });
    const at = `/api/v1/assets/${asset.id}`;
    const isComplete = async () => (await get(at)).encoding_status === "complete";
    await until("it is encoded", isComplete, 90_000);
    const [track, ...others] = await get(`${at}/subtitles`);
    expect(others).toEqual([]);
    expect(track).toMatchObject({ language: "und", label: "CC1", source: "upload", status: "ready" });
    expect((await get(at)).warnings).toEqual([]);
    const { cues } = await get(`${at}/transcript?format=json`);
    expect(cues).toHaveLength(SHOWN.length);
    for (const [index, [start, end, text]] of SHOWN.entries()) {
      expect(cues[index].text).toBe(text);
      expect(Math.abs(cues[index].start_ms / 1000 - start)).toBeLessThan(0.3);
      expect(Math.abs(cues[index].end_ms / 1000 - end)).toBeLessThan(0.1);
    }
    const { hls_url, dash_url } = await get(`/api/v1/playback/${asset.id}`);
    expect(await (await fetch(hls_url)).text()).toMatch(/#EXT-X-MEDIA:TYPE=SUBTITLES,.*NAME="CC1"/);
    expect(await (await fetch(dash_url)).text()).toContain('mimeType="text/vtt"');

    // A language that was corrected stays the only one.
    await server.as(key).updateSubtitle(asset.id, track.id, { language: "en" });
    await server.as(key).reencodeAsset(asset.id, {});
    const jobs = async () => get(`/api/v1/transcoding_jobs?asset_id=${asset.id}`);
    const isDone = (all: { status: string }[]) => all.every(({ status }) => status === "completed");
    await until("it is encoded again", async () => isDone(await jobs()), 90_000);
    expect(await get(`${at}/subtitles`)).toMatchObject([{ id: track.id, language: "en" }]);
  },
);

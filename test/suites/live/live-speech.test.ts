import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { until } from "#test/support/descendants.ts";
import { newFolder } from "#test/support/folder.ts";
import { liveServer, newChannel, publish } from "#test/support/live.ts";

/** An engine that hears something at the start and the end of whatever it gets; its length in seconds is one of the words. */
const ENGINE = `#!/bin/sh
seconds=$(( ($(stat -c %s "$1") - 44) / 32000 ))
printf 'WEBVTT\\n\\n00:00.500 --> 00:01.900\\nSpoken in %s: %s seconds\\n' "$2" "$seconds"
[ "$seconds" -lt 4 ] || printf '\\n00:%02d.500 --> 00:%02d.900\\nSpoken in %s: the end\\n' $((seconds - 2)) $((seconds - 1)) "$2"
`;

const text = async (url: string) => {
  const response = await fetch(url);
  expect([url, response.status]).toEqual([url, 200]);
  return response.text();
};
const cuesIn = (vtt: string) =>
  [...vtt.matchAll(/00:00:(\d\d\.\d{3}) --> 00:00:(\d\d\.\d{3}).*\n(.+)/g)].map(
    ([, start, end, words]) => [Number(start), Number(end), words] as [number, number, string],
  );

test("what is said in a stream is read a few seconds later while it runs, and at its time in the recording", async () => {
  const engine = join(newFolder(), "engine");
  writeFileSync(engine, ENGINE);
  chmodSync(engine, 0o755);
  const server = await liveServer({ env: { VODBOX_TRANSCRIBE: "command", VODBOX_TRANSCRIBE_COMMAND: engine } });
  const channel = await newChannel(server, { captions_live: ["en", "de"], low_latency: false });
  const publishing = publish(server, channel, 18);
  const master = `${server.base}/live/${channel.channel}/master.m3u8`;
  const listed = await until(
    "the stream is listed",
    async () => {
      const response = await fetch(master);
      return response.status === 200 ? response.text() : null;
    },
    60_000,
  );
  expect(listed).toMatch(/^#EXT-X-MEDIA:TYPE=SUBTITLES,.*NAME="English",LANGUAGE="en",/m);
  expect(listed).toMatch(/^#EXT-X-MEDIA:TYPE=SUBTITLES,.*NAME="Deutsch",LANGUAGE="de",/m);
  const playlist = new URL(/URI="([^"]+\/speech-en\/live\.m3u8)"/.exec(listed)?.[1] as string, master).href;
  const shown = await until(
    "two captions",
    async () => {
      const names = (await text(playlist)).match(/^\d+\.vtt$/gm) ?? [];
      const parts = await Promise.all(names.map((name) => text(new URL(name, playlist).href)));
      const found = parts.flatMap(cuesIn);
      return new Set(found.map(([start]) => Math.floor(start / 2))).size >= 2 ? found : null;
    },
    60_000,
  );
  for (const [start, end, words] of shown) {
    expect(end).toBeGreaterThan(start);
    expect(words).toMatch(/^Spoken in en: (\d+ seconds|the end)$/);
  }
  // The first four seconds are recognized when they are over.
  expect(shown[0]?.[0]).toBeGreaterThanOrEqual(3.9);

  expect((await publishing.exit)[0]).toBe(0);
  const asset = await until(
    "the recording",
    async () => (await server.call("GET", "/api/v1/assets", { key: channel.key })).body[0] ?? null,
    120_000,
  );
  const at = `/api/v1/assets/${asset.id}`;
  const subtitles = (await server.call("GET", `${at}/subtitles`, { key: channel.key })).body;
  expect(subtitles.map(({ language, source, label }: any) => [language, source, label]).sort()).toEqual([
    ["de", "auto", "Deutsch"],
    ["en", "auto", "English"],
  ]);
  const { cues } = (await server.call("GET", `${at}/transcript?format=json&language=de`, { key: channel.key })).body;
  // When it was said, not when it was shown.
  expect(cues[0]).toMatchObject({ text: expect.stringMatching(/^Spoken in de/), start_ms: 500 });
  expect(cues.length).toBeGreaterThan(1);
  // The last seconds are shorter than a piece that is recognized while the stream runs.
  expect(cues.at(-1).start_ms).toBeGreaterThan(15_000);
});

import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { until } from "#test/support/descendants.ts";
import { newFolder } from "#test/support/folder.ts";
import { type LiveServer, liveServer, newChannel, publish, type TestChannel } from "#test/support/live.ts";
import { nightly } from "#test/support/nightly.ts";
import { typedClient } from "#test/support/typed-client.ts";

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

/** A server with an engine that answers at once. */
function speechServer(options: Parameters<typeof liveServer>[0] = {}) {
  const engine = join(newFolder(), "engine");
  writeFileSync(engine, ENGINE);
  chmodSync(engine, 0o755);
  const transcriber = { VODBOX_TRANSCRIBE: "command", VODBOX_TRANSCRIBE_COMMAND: engine };
  return liveServer({ ...options, env: { ...transcriber, ...options?.env } });
}
const minutesOf = async ({ as, admin }: LiveServer): Promise<number> =>
  (await as({ admin }).getUsage()).body[0].transcoding_minutes;
const recordingOf = ({ call }: LiveServer, { key }: TestChannel) =>
  until("the recording", async () => (await typedClient(call)(key).listAssets()).body[0] ?? null, 120_000);

test("what is said in a stream is read a few seconds later while it runs, and at its time in the recording", async () => {
  const server = await speechServer();
  const channel = await newChannel(server, { captions_live: ["en", "de", "fr", "es"], low_latency: false });
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
  const asset = await recordingOf(server, channel);
  const at = `/api/v1/assets/${asset.id}`;
  const subtitles = (await server.as(channel.key).listSubtitles(asset.id)).body;
  expect(subtitles.map(({ language, source, label }) => [language, source, label]).sort()).toEqual([
    ["de", "auto", "Deutsch"],
    ["en", "auto", "English"],
    ["es", "auto", "Español"],
    ["fr", "auto", "Français"],
  ]);
  const { cues } = (await server.call("GET", `${at}/transcript?format=json&language=de`, { key: channel.key })).body;
  // When it was said, not when it was shown.
  expect(cues[0]).toMatchObject({ text: expect.stringMatching(/^Spoken in de/), start_ms: 500 });
  expect(cues.length).toBeGreaterThan(1);
  // The last seconds are shorter than a piece that is recognized while the stream runs.
  expect(cues.at(-1).start_ms).toBeGreaterThan(15_000);
  // Four languages of 18 s, which the recording keeps without another recognition.
  await until("all minutes are counted", async () => (await minutesOf(server)) === 2, 30_000);
});

nightly("a killed server loses the speech of a few seconds from the usage, and counts none of it again", async () => {
  const languages = ["en", "de", "fr", "es"];
  const server = await speechServer();
  const channel = await newChannel(server, { captions_live: languages });
  publish(server, channel, 60);
  await until("more than a minute is counted", async () => (await minutesOf(server)) >= 2, 60_000);
  const counted = await minutesOf(server);
  server.child.kill("SIGKILL");
  await server.ended;
  const again = await speechServer({ dataDir: server.dataDir });
  const { duration_seconds } = await recordingOf(again, channel);
  const kept = await minutesOf(again);
  expect(kept).toBeGreaterThanOrEqual(counted);
  expect(kept).toBeLessThanOrEqual(Math.ceil((languages.length * duration_seconds) / 60));
});

test("without minutes left in the plan, the speech of a stream is not recognized", async () => {
  const meter = { included: 0, unit_price_minor: 1 };
  const plan = { storage_gb_month: meter, egress_gb: meter, transcoding_minute: meter };
  const pro = { ...plan, quotas: { transcoding_minutes: 0 } };
  const plans = { free: plan, starter: plan, pro, enterprise: plan };
  const server = await speechServer({ env: { VODBOX_PRICES: JSON.stringify({ currency: "EUR", plans }) } });
  const channel = await newChannel(server, { captions_live: ["en"] });
  expect((await publish(server, channel, 9).exit)[0]).toBe(0);
  const { id } = await recordingOf(server, channel);
  expect((await server.as(channel.key).listSubtitles(id)).body).toEqual([]);
  await until("the log has the reason", () =>
    /the speech of a stream is not recognized.*0 transcoding minutes|0 transcoding minutes.*the speech of a stream/.test(
      server.stdout() + server.stderr(),
    ),
  );
  expect(await minutesOf(server)).toBe(0);
});

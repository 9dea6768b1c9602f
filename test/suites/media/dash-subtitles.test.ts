import { spawn } from "node:child_process";
import type { Readable } from "node:stream";
import pino from "pino";
import { beforeAll, describe, expect, test } from "vitest";
import { startListening } from "#src/listen.ts";
import { type TestApp, testApp } from "#test/support/app.ts";
import { colouredFilm, delivered } from "#test/support/films.ts";
import { watched } from "#test/support/process.ts";
import { subtitled } from "#test/support/subtitles.ts";

const plain = (label: string) => label.replaceAll(/[&<>]/g, "");
/** `colouredFilm` is six seconds of 25 frames. */
const FRAMES = 150;
let app: TestApp;
let key: string;
let base: string;
beforeAll(async () => {
  app = await testApp();
  key = await app.key((await app.tenant()).id);
  const { opened } = app;
  const options = { log: pino({ level: "silent" }) };
  const listening = await startListening({ ...opened.app.config, port: 0 }, opened.server, options);
  base = listening.address;
  return async () => {
    await listening.close(100);
    await app.close();
  };
});

/** The texts that it finds, each track to its end. */
async function texts(path: string, count: number) {
  const maps = Array.from({ length: count }, (_, at) => ["-map", `0:s:${at}`, "-f", "webvtt", `pipe:${3 + at}`]).flat();
  const args = ["-nostdin", "-v", "warning", "-i", base + path, ...maps];
  const child = spawn("ffmpeg", args, { stdio: ["ignore", "ignore", "inherit", ...Array(count).fill("pipe")] });
  return Promise.all(child.stdio.slice(3).map(async (pipe) => (await (pipe as Readable).toArray()).join("")));
}

/** What Debian's ffmpeg decodes of a manifest, all streams to their end. */
async function decoded(path: string) {
  const args = ["-nostdin", "-v", "warning", "-progress", "pipe:1", "-i", base + path, "-f", "null", "-"];
  const { code, stdout, stderr } = await watched(spawn("ffmpeg", args)).ended;
  const frames = [...stdout.matchAll(/^frame=(\d+)$/gm)].at(-1)?.[1];
  return { code, frames: Number(frames), faults: stderr };
}

describe.each(["public", "signed"] as const)("the DASH manifest of a %s asset", (policy) => {
  let id: number;
  beforeAll(async () => {
    const files = await colouredFilm();
    const assets = { ours: { playback_policy: policy, dash: { manifest_path: "ours/manifest.mpd" } } };
    id = (await delivered(app, key, { files, assets })).ours.id;
    return () => {};
  });
  const manifest = async () => {
    const { body } = await app.as(key).getPlayback(id);
    return body.dash_url.slice("http://vodbox.test".length) as string;
  };

  test("is decoded by the system's ffmpeg with no, one and several subtitles", async () => {
    const tracks: [string, string][] = [
      ["en", "English"],
      ["de", "Deutsch & <Co>"],
      ["pt-BR", "Português"],
    ];
    for (let count = 0; ; count++) {
      const found = await decoded(await manifest());
      expect(found, `${count} subtitles`).toEqual({ code: 0, frames: FRAMES, faults: "" });
      const read = count === 0 ? [] : await texts(await manifest(), count);
      const first = read.map((text) => text.split("\n").find((line) => /^[A-Z]/.test(line) && line !== "WEBVTT"));
      const labels = tracks.slice(0, count).map(([, label]) => plain(label));
      expect(first.toSorted()).toEqual(labels.toSorted());
      const next = tracks[count];
      if (!next) return;
      const [language, label] = next;
      await subtitled(
        app,
        key,
        id,
        { language, label },
        `WEBVTT\n\n00:00.500 --> 00:01.500\n${plain(label)}\n\n00:03.000 --> 00:04.000\nTwo\n`,
      );
    }
  });
});

import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { encode } from "#media/encode.ts";
import { encodingSpec } from "#media/encoding-spec.ts";
import { type ImageSource, still } from "#media/image.ts";
import { probeSource as probe } from "#media/timeline.ts";
import { sample } from "#test/support/amount.ts";
import { EMULATED_GPU, sharedBrowser } from "#test/support/browser/browser.ts";
import { shownColors } from "#test/support/browser/shown-colors.ts";
import { colorSource, PATCHES } from "#test/support/media/color-sources.ts";
import { binaries, ffmpeg, ffprobe, temporaryFolder } from "#test/support/media/sources.ts";
import { COLOR_ROWS, type ColorRow } from "./color-rows.ts";

/**
 * The poster, the storyboard and images of a moment look like the renditions in the same browser, and these like the source.
 */
vi.setConfig({ testTimeout: 400_000 });

const folder = temporaryFolder("shown-colors");
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** The largest distance, in steps of 255. */
const LIMIT = 6;
/**
 * Without a GPU, Chromium's conversion of BT.709 (libyuv) multiplies Cb by 2.0 instead of 2.11, so that blue is up to 13 off in
 * saturated colors. With one it is exact.
 */
const LIMITS = { software: [LIMIT, LIMIT, 14], emulated: [LIMIT, LIMIT, LIMIT] } as const;
type Kind = keyof typeof LIMITS;

let pages: Record<Kind, Page>;
beforeAll(async () => {
  const opened = async (browser: Promise<Browser>) => (await browser).newPage();
  const [software, emulated] = await Promise.all([opened(sharedBrowser()), opened(sharedBrowser(...EMULATED_GPU))]);
  pages = { software, emulated };
});

const count = PATCHES.length;
type Shown = number[][] | null;

function expectAlike(found: Shown, wanted: Shown, limits: readonly number[], what: string): void {
  const isAlike = found?.every((one, patch) =>
    one.every(
      (value, channel) => Math.abs(value - (wanted?.[patch]?.[channel] ?? Number.NaN)) <= (limits[channel] ?? 0),
    ),
  );
  expect(isAlike, `${what}: ${JSON.stringify(found)} instead of ${JSON.stringify(wanted)}`).toBe(true);
}

/** Its primaries are those of the display: where Chromium does not decode the source, its colors are known. */
const isPlain = (source: ColorRow["source"]) =>
  typeof source !== "function" && ["bt709", "smpte170m", "unknown"].includes(source.tags.primaries);

const STATES = "stream=color_range,color_space,color_transfer,color_primaries";

test.each(sample(Object.entries(COLOR_ROWS), 4))(
  "%s",
  async (title, { source, states, spec = encodingSpec, exception }) => {
    const name = title.replaceAll(/\W+/g, "-");
    const input = await (typeof source === "function" ? source(folder, name) : colorSource(folder, name, source));
    const outDir = join(folder, name);
    const watermark = join(folder, "mark.png");
    await ffmpeg("-f", "lavfi", "-i", "color=c=0x2060e0:s=80x20,format=rgba", "-frames:v", "1", watermark);
    const marked = spec.video.watermark ? { watermark } : {};
    const common = { input, outDir, spec, binaries, scratchDir: folder, ...marked };
    const { renditions } = await encode({ ...common, probe: await probe(input, binaries) });
    const read = (file: string) => readFileSync(join(outDir, file));
    const videos = renditions.filter(({ width }) => width !== null);
    expect(videos.length).toBeGreaterThan(1);

    const poster = read("thumbnail.jpg");
    const [width, height] = (/xywh=0,0,(\d+),(\d+)/.exec(read("storyboard.vtt").toString()) ?? []).slice(1).map(Number);
    const tile = { width: width as number, height: height as number };
    const stills: Record<string, Buffer> = { "the poster": poster };
    for (const format of ["jpg", "png", "webp"] as const) {
      const top = videos[0]?.name ?? "";
      const init = read(join(top, "init.mp4"));
      const inputs: Record<string, ImageSource> = {
        "the poster": { input: Readable.from([poster]), kind: "image" },
        "a moment": { input: Readable.from([init, read(join(top, "00001.m4s"))]), kind: "video", init },
      };
      for (const [what, one] of Object.entries(inputs)) {
        const box = { width: null, height: null, fit: "preserve" } as const;
        const image = await still(one, { offsetSeconds: 0.5, box, format }, { ffmpeg: binaries.ffmpeg, cwd: folder });
        stills[`${format} of ${what}`] = image;
      }
    }

    const files: Record<string, string> = {};
    for (const [index, one] of videos.entries()) {
      const file = join(folder, `${name}-${one.name}.mp4`);
      writeFileSync(file, Buffer.concat(["init.mp4", "00001.m4s"].map((part) => read(join(one.name, part)))));
      const found = (await ffprobe("-show_entries", STATES, "-of", "csv=p=0", file)).trim();
      expect.soft(found, one.name).toBe(states[index === 0 ? 0 : 1]);
      files[one.name] = file;
    }
    for (const kind of Object.keys(LIMITS) as Kind[]) {
      const page = pages[kind];
      const limits = LIMITS[kind];
      const images: [string, Shown][] = [
        ["the storyboard", await shownColors(page, read("storyboard-1.jpg"), { kind: "image", count, region: tile })],
      ];
      for (const [what, image] of Object.entries(stills))
        images.push([what, await shownColors(page, image, { kind: "image", count })]);
      const original = exception ? null : await shownColors(page, input, { kind: "video", count });
      for (const [name, file] of Object.entries(files)) {
        const wanted = await shownColors(page, file, { kind: "video", count });
        expect(wanted, name).not.toBeNull();
        // Chromium converts 4:4:4 as without a GPU.
        if (original) expectAlike(wanted, original, LIMITS.software, `${name} and the source, ${kind}`);
        else if (!spec.video.watermark && isPlain(source))
          expectAlike(wanted, [...PATCHES.map((patch) => [...patch])], limits, `${name} and the patches, ${kind}`);
        for (const [what, found] of images) expectAlike(found, wanted, limits, `${what} and ${name}, ${kind}`);
      }
    }
  },
);

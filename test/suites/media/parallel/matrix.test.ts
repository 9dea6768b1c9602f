import { rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, test, vi } from "vitest";
import { isNightly } from "#test/support/amount.ts";
import { oddRows } from "#test/support/media/matrix-odd-rows.ts";
import { rows } from "#test/support/media/matrix-rows.ts";
import type { Row } from "#test/support/media/matrix-sources.ts";
import { framesToEncode } from "#test/support/media/parallel/frames.ts";
import { planned, sparseCopy } from "#test/support/media/parallel/parts.ts";
import { ffmpeg, temporaryFolder } from "#test/support/media/sources.ts";
import { colorRows, unevenRows } from "./uneven-rows.ts";

vi.setConfig({ maxConcurrency: 2 });

const folder = temporaryFolder("parts");
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** The same source with a duration of 22 s: three chunks of eight seconds. */
const lengthened = (args: string[]) => args.map((arg) => arg.replaceAll(/\bd=[0-9.]+/g, "d=22"));
/** The others derive from a second file, or are damaged. */
const generated = [...rows, ...oddRows, ...unevenRows, ...colorRows].filter((row): row is Row & { from: string[] } =>
  Array.isArray(row.from),
);

/** Sources with so few frames per second that the default distance of keyframes is longer than the source. */
const FEW_FRAMES = ["variable rate in MP4", "a frame per second, five of them", "two hours"];

/** MP4 files whose video cannot be located with certainty. */
const UNINDEXED: string[] = [];

/** Why the other rows are not cut. */
const REASONS: Record<string, string> = {
  "AV1 in matroska": "long_gop",
  "AV1 of 10 bits": "long_gop",
  "a clock that starts below 0": "inexact",
};

/** In the full tier a fifteenth of those that are cut. */
const tested = generated.filter((row, index) => isNightly || row.name in REASONS || index % 15 === 0);

describe.concurrent("a source in three parts", () => {
  for (const [index, row] of tested.entries())
    test(`${row.file}: ${row.name}`, async () => {
      const input = join(folder, `${index}-${row.file}`);
      await ffmpeg(...lengthened(row.from), ...(FEW_FRAMES.includes(row.name) ? ["-g", "15"] : []), input);
      const parts = await planned(input, 2);
      const reason = row.size === null ? "no_video" : REASONS[row.name];
      if (reason !== undefined || (parts.uncuttable !== null && parts.uncuttable !== "passthrough")) {
        expect(parts.uncuttable).toBe(reason);
        return;
      }
      expect(parts.chunks.length).toBeGreaterThanOrEqual(2);
      const { plan, chunks } = parts;
      const whole = await framesToEncode(input, plan);
      const joined = [];
      const fromParts = [];
      const isIndexed = parts.index !== null && !UNINDEXED.includes(row.name);
      for (const chunk of chunks) {
        const { first_frame: firstFrame, end_frame: endFrame } = chunk;
        const range = { firstFrame, endFrame, seekBackSeconds: plan.seekBackSeconds };
        joined.push(await framesToEncode(input, plan, range));
        const path = join(folder, `${index}-part-${row.file}`);
        const copy = await sparseCopy(input, path, parts, chunk);
        expect(copy !== null).toBe(isIndexed);
        if (copy) fromParts.push(await framesToEncode(path, plan, { ...range, seekSeconds: copy.seekSeconds }));
      }
      for (const [stream] of plan.video?.renditions.entries() ?? []) {
        const of = (frames: string[]) => frames.filter((frame) => frame.startsWith(`${stream} `));
        expect(joined.flatMap(of)).toEqual(of(whole));
        if (isIndexed) expect(fromParts.flatMap(of)).toEqual(of(whole));
      }
    });
});

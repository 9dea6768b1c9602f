import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { encode } from "#media/encode.ts";
import { encodingSpec as spec } from "#media/encoding-spec.ts";
import { probeSource as probe } from "#media/timeline.ts";
import { isNightly } from "#test/support/amount.ts";
import { oddRows } from "#test/support/media/matrix-odd-rows.ts";
import { rows } from "#test/support/media/matrix-rows.ts";
import type { Row } from "#test/support/media/matrix-sources.ts";
import { packetsOf, samplesOf } from "#test/support/media/parallel/frames.ts";
import { encodedInParts, planned } from "#test/support/media/parallel/parts.ts";
import { binaries, ffmpeg, temporaryFolder } from "#test/support/media/sources.ts";
import { unevenRows } from "./uneven-rows.ts";

const folder = temporaryFolder("packets");
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Sources in different containers, one of them copied; all that can be cut in the nightly tier, and with `MATRIX_PARTS=all`. */
const DEFAULT = ["that is copied, including audio"];
const DEFAULT_UNEVEN = ["late audio in two tracks"];
const areAll = isNightly || process.env.MATRIX_PARTS === "all";
const isAmong = (names: readonly string[]) => (row: Row) => areAll || names.includes(row.name);

const lengthened = (args: string[]) => args.map((arg) => arg.replaceAll(/\bd=[0-9.]+/g, "d=18"));
const chosen = [
  ...[...rows, ...oddRows].filter(isAmong(DEFAULT)),
  ...unevenRows.filter(isAmong(DEFAULT_UNEVEN)),
].filter((row): row is Row & { from: string[] } => Array.isArray(row.from) && row.size !== null);

describe("the packets of a source in parts are those of one run", () => {
  for (const [index, row] of chosen.entries())
    test(`${row.file}: ${row.name}`, async () => {
      const input = join(folder, `${index}-${row.file}`);
      await ffmpeg(...lengthened(row.from), input);
      const parts = await planned(input, 2);
      if (parts.uncuttable !== null || parts.chunks.length < 2) {
        expect(DEFAULT).not.toContain(row.name);
        return;
      }
      const dirs = { whole: join(folder, `${index}-whole`), parts: join(folder, `${index}-parts`) };
      const media = await probe(input, binaries);
      const whole = await encode({ input, outDir: dirs.whole, spec, binaries, scratchDir: folder, probe: media });
      await encodedInParts(input, dirs.parts, parts);
      const videos = whole.renditions.map((one) => one.name);
      const audio = parts.plan.audio.map((one) => one.name);
      for (const rendition of audio)
        expect(await samplesOf(dirs.parts, rendition), rendition).toBe(await samplesOf(dirs.whole, rendition));
      for (const rendition of [...videos, ...audio]) {
        const [joined, single] = [dirs.parts, dirs.whole].map((dir) => readFileSync(join(dir, rendition, "init.mp4")));
        expect(joined?.equals(single as Buffer), rendition).toBe(true);
        // Presentation and decoding times, and keyframes.
        expect(await packetsOf(dirs.parts, rendition)).toEqual(await packetsOf(dirs.whole, rendition));
      }
    });
});

import { readFileSync, writeFileSync } from "node:fs";
import { encode } from "#media/encode.ts";
import type { EncodingSpec } from "#media/encoding-spec.ts";
import { probeSource as probe } from "#media/timeline.ts";
import { binaries, ffmpeg } from "#test/support/media/sources.ts";

type Options = {
  /** In a directory that may be used as scratch; the result is next to it. */
  input: string;
  /** ffmpeg's, without the output. */
  args: readonly string[];
  spec: EncodingSpec;
  scratchDir: string;
  /** Changes the bytes of the source. */
  damage?: ((whole: Buffer) => Buffer) | undefined;
};

/** Makes a source, changes its bytes, and encodes it in one run. */
export async function encodedSource({ input, args, spec, scratchDir, damage = (whole) => whole }: Options) {
  await ffmpeg(...args, input);
  writeFileSync(input, damage(readFileSync(input)));
  const dir = `${input}.out`;
  const found = await probe(input, binaries);
  return { dir, result: await encode({ input, outDir: dir, spec, binaries, scratchDir, probe: found }) };
}

import { execFile } from "node:child_process";
import { chmodSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, expect, test } from "vitest";
import { encode } from "#media/encode.ts";
import { BUILT_IN_PROFILES, specOf } from "#media/encoding-profiles.ts";
import { encodingSpec } from "#media/encoding-spec.ts";
import { detectFfmpegCapabilities } from "#media/ffmpeg-capabilities.ts";
import { requireEncoder } from "#media/require-encoder.ts";
import { probeSource as probe } from "#media/timeline.ts";
import type { ProfileDefinition } from "#protocol/encoding-profile.ts";
import type { Encoder } from "#src/lib/codecs/encoders.ts";
import { additionalVideoCodecs, videoCodecs } from "#src/lib/codecs/registry.ts";
import { av1Binaries as binaries } from "#test/support/media/av1.ts";
import { patchesSource } from "#test/support/media/hdr-sources.ts";
import { complaints, fast, ffmpeg, picture, temporaryFolder } from "#test/support/media/sources.ts";
import { nightly } from "#test/support/nightly.ts";

/** No machine that runs these tests has such hardware: its encoders are imitated, or only their options are checked. */

const folder = temporaryFolder("hardware-encoders");
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/**
 * An ffmpeg with a graphics card that encodes H.264 and HEVC, and not AV1. In place of the card it uses the software
 * encoders, with a level that these would not choose, so that codec strings show which of them was used.
 */
function withCard(): string {
  const path = join(folder, "ffmpeg-with-card");
  const script = [
    "#!/bin/sh",
    "n=$#",
    "while [ $n -gt 0 ]; do",
    '  a=$1; shift; n=$((n-1)); case "$a" in',
    '  h264_nvenc) set -- "$@" libx264 -sc_threshold 0 -level 6.2;;',
    '  hevc_nvenc) set -- "$@" libx265 -x265-params scenecut=0:open-gop=0:info=0:log-level=warning:level-idc=6.2;;',
    '  av1_nvenc) echo "No capable devices found" >&2; exit 1;;',
    '  p5) set -- "$@" veryfast;;',
    '  -cq) set -- "$@" -crf;;',
    "  -rc|-no-scenecut|-b:v) shift; n=$((n-1));;",
    '  *) set -- "$@" "$a";;',
    "  esac",
    "done",
    `exec ${binaries.ffmpeg} "$@"`,
  ];
  writeFileSync(path, `${script.join("\n")}\n`);
  chmodSync(path, 0o755);
  return path;
}
const card = { ...binaries, ffmpeg: withCard() };

const specFor = (fields: Partial<ProfileDefinition>) =>
  specOf(
    {
      ...BUILT_IN_PROFILES.default.definition,
      codecs: ["h264", "hevc", "av1"],
      ladder: [{ height: 180, max_bitrate: 300_000 }],
      ...fields,
    },
    null,
  );

async function codecStrings(input: string, fields: Partial<ProfileDefinition> = {}): Promise<string[]> {
  const { encoders } = await requireEncoder(card.ffmpeg, "nvenc", encodingSpec);
  const outDir = join(folder, `${Object.keys(fields).join() || "all"}.out`);
  const common = {
    input,
    outDir,
    probe: await probe(input, binaries),
    spec: specFor(fields),
    binaries: card,
    encoders,
  };
  const { renditions } = await encode({ ...common, scratchDir: folder });
  for (const { name } of renditions)
    expect(await complaints("-i", join(outDir, name, "playlist.m3u8"), "-f", "null", "-")).toBe("");
  return renditions.flatMap(({ codecs }) => (/^(avc1|hvc1|av01)/.test(codecs) ? [codecs] : []));
}

test("the codecs that the hardware supports are encoded by it, the others in software", async () => {
  const input = join(folder, "source.mp4");
  await ffmpeg(...picture("640x360", "25", 2), ...fast, input);
  const { encoders, lacking } = await requireEncoder(card.ffmpeg, "nvenc", encodingSpec);
  expect(encoders).toEqual({ h264: "nvenc", hevc: "nvenc" });
  expect(lacking).toEqual([expect.stringMatching(/^av1: .*No capable devices found/)]);
  // Level 6.2 of H.264 (3e) and of HEVC (186).
  expect(await codecStrings(input)).toEqual([
    expect.stringMatching(/^avc1\.64003e$/),
    expect.stringMatching(/^hvc1\.1\.6\.L186/),
    expect.stringMatching(/^av01\.0\.00M\.08$/),
  ]);
  const report = await detectFfmpegCapabilities(card, { encoder: "nvenc", spec: encodingSpec });
  expect(report).toMatch(/but encodes in software: av1: .*No capable devices found/);
});

nightly("HDR is kept in software", async () => {
  const input = await patchesSource(folder, "hdr10.mp4", "hdr10", [[419, 512, 512]], { seconds: 2 });
  const strings = await codecStrings(input, { hdr: "keep" });
  expect(strings).toEqual([
    expect.stringMatching(/^avc1\.64003e$/),
    expect.stringMatching(/^hvc1\.2\.4\.L(?!186)/),
    expect.stringMatching(/^av01\.0\.\d\dM\.10/),
  ]);
});

/** Debian's ffmpeg, which has the encoders of H.264 and HEVC. It reads all options before it looks for the hardware. */
test.for(
  (["nvenc", "qsv", "vaapi"] as const).flatMap((encoder) =>
    [videoCodecs.h264, ...additionalVideoCodecs].map((codec) => [encoder, codec.name, codec] as const),
  ),
)("ffmpeg knows the options of %s for %s", async ([encoder, , codec]) => {
  const options = optionsOf(encoder, codec);
  const name = options[options.indexOf("-c:v") + 1] as string;
  expect(name).toBe(`${codec.name}_${encoder}`);
  const { stdout } = await promisify(execFile)("ffmpeg", ["-hide_banner", "-h", `encoder=${name}`]);
  // Its version has no AV1 encoder in hardware: the options of both are named alike.
  const known = stdout.includes("AVOptions")
    ? stdout
    : (await promisify(execFile)("ffmpeg", ["-hide_banner", "-h", `encoder=hevc_${encoder}`])).stdout;
  const own = options.filter((option) => /^-[a-z]/.test(option) && !GENERIC.has(option));
  expect(own.filter((option) => !known.includes(`  ${option.split(":", 1)[0]} `))).toEqual([]);
  expect(own.length).toBeGreaterThan(0);
});

/** The options of ffmpeg itself and of libavcodec, for all encoders. */
const GENERIC = new Set("-c:v -b:v -maxrate -bufsize -global_quality -tag:v -bsf:v -flags".split(" "));

function optionsOf(
  encoder: Encoder,
  codec: typeof videoCodecs.h264 | (typeof additionalVideoCodecs)[number],
): string[] {
  const { settings } = "defaults" in codec ? codec.defaults : { settings: encodingSpec.video };
  return codec.encoderArguments[encoder]({ crf: 23, maxBitrate: 1_000_000, buffer: 1_500_000 }, settings);
}

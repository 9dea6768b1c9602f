import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { ffmpeg } from "#test/support/media/sources.ts";
import { beeping, picture, SECONDS, type Source, words, x264 } from "./source.ts";

/**
 * HE-AAC whose headers state AAC-LC at half of the rate (ISO/IEC 14496-3, 1.6.5.3, implicit signalling): a decoder finds
 * spectral band replication, and parametric stereo, in the first frame. Phones and radio stations write it. Debian has no
 * encoder, so the extension is added to frames of AAC-LC: constant bits, with a quiet band above 4.9 kHz.
 */

const bits = (value: number, count: number): string => value.toString(2).padStart(count, "0");

/** 4.4.2.8: a header whose tables have bands of low resolution and one of noise, then one envelope of equal values. */
const replication = (rate: number): string =>
  [
    ...["1", "0", bits(5, 4), bits(14, 4), bits(0, 3), "00", "1", "0", "00", "0", "00"],
    ...["0", "00", "00", "0", "0", "0", "00", bits(8, 7), "00".repeat((BANDS[rate] as number) - 1), bits(20, 5), "0"],
  ].join("");
/** By the rate that is stated. */
const BANDS: Record<number, number> = { 24000: 6, 22050: 7 };
/** 8.4.4 (subpart 8): one envelope of ten intensities, all at the end of the scale, so that one side is silent. */
const PS = ["1", "1", "000", "0", "0", "0", "01", "0", "11111111110", "0".repeat(9)].join("");
const ID_PS = "10";
const ID_FILL = "110";
const ID_END = "111";
const EXTENSION_SBR = "1101";

type Replication = { rate: number; hasStereo: boolean };

/** A fill element with the extension. */
function extension({ rate, hasStereo }: Replication): string {
  const stereo = ID_PS + PS;
  const bytes = Math.ceil(stereo.length / 8);
  const data = `${EXTENSION_SBR}${replication(rate)}${hasStereo ? `1${bits(bytes, 4)}${stereo.padEnd(bytes * 8, "0")}` : "0"}`;
  const count = Math.ceil(data.length / 8);
  const size = count < 15 ? bits(count, 4) : `1111${bits(count - 14, 8)}`;
  return ID_FILL + size + data.padEnd(count * 8, "0");
}

const ADTS_BYTES = 7;

/** ADTS with the extension in each frame. */
function withReplication(adts: Buffer, kind: Replication): Buffer {
  const added = extension(kind);
  const frames: Buffer[] = [];
  for (let at = 0; at + ADTS_BYTES < adts.length; ) {
    const length = (adts.readUInt32BE(at + 3) >> 13) & 0x1fff;
    const header = Buffer.from(adts.subarray(at, at + ADTS_BYTES));
    const raw = [...adts.subarray(at + ADTS_BYTES, at + length)].map((byte) => bits(byte, 8)).join("");
    // The frame ends with ID_END and zeros.
    const elements = raw.slice(0, raw.lastIndexOf("1") + 1 - ID_END.length);
    const body = elements + added + ID_END;
    const data = Buffer.from(
      (body.padEnd(Math.ceil(body.length / 8) * 8, "0").match(/.{8}/g) ?? []).map((byte) => Number.parseInt(byte, 2)),
    );
    const size = ADTS_BYTES + data.length;
    header[3] = ((header[3] as number) & 0xfc) | (size >> 11);
    header[4] = (size >> 3) & 0xff;
    header[5] = ((size & 7) << 5) | ((header[5] as number) & 0x1f);
    frames.push(header, data);
    at += length;
  }
  return Buffer.concat(frames);
}

/** Writes ADTS at a rate whose decoded audio has twice of it. */
export async function writeReplicated(path: string, kind: Replication) {
  const plain = `${path}.lc.aac`;
  await ffmpeg(...beeping({ rate: kind.rate, layout: "mono" }), ...words("-c:a aac -b:a 48k"), plain);
  writeFileSync(path, withReplication(readFileSync(plain), kind));
  rmSync(plain);
}

/** The delay of the encoder and of the replication, in seconds, which ADTS does not state. */
const DELAY = 0.12;
const rows: [ending: string, rate: number, hasStereo: boolean][] = [
  ["mp4", 24_000, true],
  ["mp4", 22_050, true],
  ["ts", 24_000, true],
  ["mkv", 22_050, true],
  ["flv", 22_050, true],
  ["mp4", 24_000, false],
  ["ts", 22_050, false],
];
export const implicitAac: Source[] = [
  ...rows.map(([ending, rate, hasStereo]): Source => {
    const name = `${hasStereo ? "HE-AAC v2" : "HE-AAC"} that states AAC-LC of ${rate} Hz`;
    return {
      name,
      family: "Implicit HE-AAC",
      ending,
      size: "160x90",
      rate: 25,
      seconds: SECONDS,
      within: 0.25,
      apart: DELAY,
      from: async (path) => {
        await writeReplicated(`${path}.aac`, { rate, hasStereo });
        await ffmpeg(...picture(), "-i", `${path}.aac`, ...x264, "-c:a", "copy", path);
      },
    };
  }),
  ...[true, false].map(
    (hasStereo): Source => ({
      name: `implicit ${hasStereo ? "HE-AAC v2" : "HE-AAC"} alone`,
      family: "Implicit HE-AAC",
      ending: "aac",
      size: null,
      seconds: SECONDS,
      within: 0.25,
      apart: DELAY,
      from: (path) => writeReplicated(path, { rate: 24_000, hasStereo }),
    }),
  ),
];

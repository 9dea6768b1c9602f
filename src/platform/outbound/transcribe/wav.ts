import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { TranscriptionFailed } from "./transcriber.ts";

/** 16 bits, 16 kHz, one channel. */
export const BYTES_PER_SECOND = 32_000;
const RATE = 16_000;
const HEADER_BYTES = 44;

/** Byte range of the samples in a WAV file, from `from` up to `to`. */
export type Samples = { from: number; to: number };

/** RIFF: chunks with an id, a length and that many bytes; chunks before `data` are skipped. */
export async function samplesOf(handle: FileHandle): Promise<Samples> {
  const { size } = await handle.stat();
  const chunk = Buffer.alloc(8);
  for (let at = 12; at + 8 <= size; ) {
    await handle.read(chunk, 0, 8, at);
    const length = chunk.readUInt32LE(4);
    // A writer to a pipe does not know the length and leaves it at the maximum.
    if (chunk.toString("latin1", 0, 4) === "data") return { from: at + 8, to: Math.min(size, at + 8 + length) };
    at += 8 + length + (length % 2);
  }
  throw new TranscriptionFailed("The audio could not be read.");
}

/** The header for `bytes` of samples. */
export function headerOf(bytes: number): Buffer {
  const header = Buffer.alloc(HEADER_BYTES);
  header.write("RIFF", 0, "latin1");
  header.writeUInt32LE(HEADER_BYTES - 8 + bytes, 4);
  header.write("WAVEfmt ", 8, "latin1");
  header.writeUInt32LE(16, 16);
  header.writeUInt16LE(1, 20);
  header.writeUInt16LE(1, 22);
  header.writeUInt32LE(RATE, 24);
  header.writeUInt32LE(BYTES_PER_SECOND, 28);
  header.writeUInt16LE(2, 32);
  header.writeUInt16LE(16, 34);
  header.write("data", 36, "latin1");
  header.writeUInt32LE(bytes, 40);
  return header;
}

export type PieceLimits = {
  /** Maximum length of a section. */
  mostSeconds: number;
  /** The range at the end of a section in which it is cut. */
  searchSeconds: number;
};

const HOP_SECONDS = 0.1;
const HOPS_OF_A_PAUSE = 5;

/** Splits long audio at its quietest points, so that no word is cut. Short audio is one section. */
export async function piecesOf(wavPath: string, { mostSeconds, searchSeconds }: PieceLimits): Promise<Samples[]> {
  await using handle = await open(wavPath, constants.O_RDONLY | constants.O_NOFOLLOW);
  const { from, to } = await samplesOf(handle);
  const pieces: Samples[] = [];
  let start = from;
  while (to - start > mostSeconds * BYTES_PER_SECOND) {
    const searchFrom = start + (mostSeconds - searchSeconds) * BYTES_PER_SECOND;
    const searched = Buffer.alloc(searchSeconds * BYTES_PER_SECOND);
    const { bytesRead } = await handle.read(searched, 0, searched.length, searchFrom);
    const cut = searchFrom + quietest(searched.subarray(0, bytesRead));
    pieces.push({ from: start, to: cut });
    start = cut;
  }
  pieces.push({ from: start, to });
  return pieces;
}

/** The middle, in bytes, of the half second with the least energy (RMS without the root). */
function quietest(bytes: Buffer): number {
  const samples = new Int16Array(bytes.buffer, bytes.byteOffset, bytes.length >> 1);
  const perHop = RATE * HOP_SECONDS;
  const energies: number[] = [];
  for (let at = 0; at + perHop <= samples.length; at += perHop) {
    let energy = 0;
    for (let index = at; index < at + perHop; index++) energy += (samples[index] as number) ** 2;
    energies.push(energy);
  }
  let best = 0;
  let least = Number.POSITIVE_INFINITY;
  for (let hop = 0; hop + HOPS_OF_A_PAUSE <= energies.length; hop++) {
    const energy = energies.slice(hop, hop + HOPS_OF_A_PAUSE).reduce((sum, one) => sum + one, 0);
    // The latest of equal ones, which keeps sections long.
    if (energy > least) continue;
    least = energy;
    best = hop;
  }
  return Math.round((best + HOPS_OF_A_PAUSE / 2) * perHop) * 2;
}

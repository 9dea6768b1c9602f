import { type FileHandle, open } from "node:fs/promises";
import { MediaError } from "../error.ts";
import { PACKET_BYTES, TransportPrograms } from "./transport-programs.ts";

/** Read at once, which takes milliseconds. */
const BLOCK_BYTES = 1 << 20;
const SYNC = 0x47;
/** Bytes before a packet: none, or the time of arrival in recordings on discs. After it: none, or Reed-Solomon parity. */
const STRIDES = [
  { before: 0, stride: PACKET_BYTES },
  { before: 4, stride: 192 },
  { before: 0, stride: 204 },
];

/**
 * The programs of a transport stream whose tables change so that tracks would be lost: each has one PID for the whole stream
 * there. Null for any other file. Throws MediaError `aborted`.
 */
export async function changingPrograms(path: string, progress: BlockProgress = {}): Promise<TransportPrograms | null> {
  const programs = new TransportPrograms();
  const packets = new PacketPositions();
  await using file = await open(path, "r");
  await forEachBlock(file, progress, (block) => packets.each(block, (at) => programs.packet(block, at)));
  return programs.isChanged && programs.fits ? programs : null;
}

/** Writes a transport stream whose tables have all tracks from the start. `programs`: of the whole source. */
export async function rewriteTransport(
  path: string,
  output: string,
  programs: TransportPrograms,
  progress: BlockProgress = {},
): Promise<void> {
  const following = new TransportPrograms(programs.firstRoutes);
  const packets = new PacketPositions();
  await using file = await open(path, "r");
  await using written = await open(output, "w");
  await written.writeFile(programs.tables());
  await forEachBlock(file, progress, async (block) => {
    let end = 0;
    const used = packets.each(block, (at) => {
      if (!following.packet(block, at)) return;
      // Packets of 188 bytes, without what was around them.
      block.copyWithin(end, at, at + PACKET_BYTES);
      end += PACKET_BYTES;
    });
    await written.writeFile(block.subarray(0, end));
    return used;
  });
}

/** Appends the packets of a PID, without the first PES packets. */
export async function copyPackets(
  path: string,
  written: FileHandle,
  { pid, skipped, signal }: { pid: number; skipped: number; signal?: AbortSignal | undefined },
): Promise<void> {
  let starts = 0;
  await using file = await open(path, "r");
  await forEachBlock(file, { signal }, async (block) => {
    let end = 0;
    const used = new PacketPositions().each(block, (at) => {
      const second = block.readUInt16BE(at + 1);
      if ((second & 0x1fff) !== pid) return;
      if (second & 0x4000) starts++;
      if (starts <= skipped) return;
      block.copyWithin(end, at, at + PACKET_BYTES);
      end += PACKET_BYTES;
    });
    await written.writeFile(block.subarray(0, end));
    return used;
  });
}

/** `onMove` is called for each block that was read. */
export type BlockProgress = { signal?: AbortSignal | undefined; onMove?: (() => void) | undefined };

/** Calls with blocks of a file; `take` returns how many bytes it used. */
async function forEachBlock(
  file: FileHandle,
  { signal, onMove }: BlockProgress,
  take: (block: Buffer) => number | Promise<number>,
): Promise<void> {
  const buffer = Buffer.alloc(BLOCK_BYTES);
  let kept = 0;
  for (;;) {
    if (signal?.aborted) throw new MediaError("aborted", "The run was aborted.", true);
    const { bytesRead } = await file.read(buffer, kept, buffer.length - kept, null);
    if (bytesRead === 0) return;
    const block = Buffer.from(buffer.subarray(0, kept + bytesRead));
    const used = await take(block);
    onMove?.();
    kept = block.length - used;
    buffer.copyWithin(0, used, block.length);
  }
}

class PacketPositions {
  #form = STRIDES[0] as (typeof STRIDES)[number];

  /** Calls with the position of each complete packet. Returns how many bytes were read. */
  each(block: Buffer, take: (at: number) => void): number {
    let at = 0;
    while (at + this.#form.stride <= block.length) {
      if (block[at + this.#form.before] === SYNC) {
        take(at + this.#form.before);
        at += this.#form.stride;
        continue;
      }
      // Wherever three follow each other there are packets.
      const start = at;
      const found = STRIDES.find(({ before, stride }) =>
        [0, 1, 2].every((count) => block[start + before + count * stride] === SYNC),
      );
      if (found && found !== this.#form) this.#form = found;
      else at++;
    }
    return at;
  }
}

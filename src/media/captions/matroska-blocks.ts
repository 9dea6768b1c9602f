import { headOf } from "./matroska-elements.ts";

/** Bytes of a block that are kept: captions are at its beginning, and the captions of a second field behind the first field. */
const MAX_BLOCK_BYTES = 2 ** 20;

/** Elements of Matroska (RFC 9559, 5.1). */
const SEGMENT = 0x18538067;
const CLUSTER = 0x1f43b675;
const TIMESTAMP = 0xe7;
const SIMPLE_BLOCK = 0xa3;
const BLOCK_GROUP = 0xa0;
const BLOCK = 0xa1;
/** What they contain is read as if it were outside of them. */
const CONTAINERS: ReadonlySet<number> = new Set([SEGMENT, CLUSTER, BLOCK_GROUP]);
const KEPT: ReadonlySet<number> = new Set([TIMESTAMP, SIMPLE_BLOCK, BLOCK]);

/** The track, which has one byte, the time in the cluster, and flags (10.1). */
const BLOCK_HEAD_BYTES = 4;

/** Times in milliseconds. */
export type Block = { ms: number; data: Buffer };

/**
 * Reads the blocks of Matroska with one track while it arrives, as ffmpeg writes it to a pipe: in milliseconds, without lacing.
 * Keeps at most one block.
 */
export class MatroskaBlocks {
  #rest: Buffer = Buffer.alloc(0);
  /** Bytes to leave out before the next element. */
  #skip = 0;
  #clusterMs = 0;

  /** The blocks that end with these bytes. */
  *take(bytes: Buffer): Generator<Block> {
    let data = this.#rest.length > 0 ? Buffer.concat([this.#rest, bytes]) : bytes;
    for (;;) {
      const skipped = Math.min(this.#skip, data.length);
      this.#skip -= skipped;
      data = data.subarray(skipped);
      const head = this.#skip > 0 ? null : headOf(data);
      if (head === null) break;
      const { id, from } = head;
      // Only containers have none.
      const size = head.size ?? 0;
      if (CONTAINERS.has(id)) {
        this.#skip = from;
        continue;
      }
      if (!KEPT.has(id)) {
        this.#skip = from + size;
        continue;
      }
      const kept = Math.min(size, MAX_BLOCK_BYTES);
      if (data.length < from + kept) break;
      const content = data.subarray(from, from + kept);
      this.#skip = from + size;
      if (id === TIMESTAMP)
        this.#clusterMs = content.length > 0 ? content.readUIntBE(0, Math.min(6, content.length)) : 0;
      else if (content.length > BLOCK_HEAD_BYTES)
        yield { ms: this.#clusterMs + content.readInt16BE(1), data: content.subarray(BLOCK_HEAD_BYTES) };
    }
    this.#rest = Buffer.from(data);
  }
}

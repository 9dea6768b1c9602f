import { type FileHandle, open } from "node:fs/promises";

/**
 * SQLite's write-ahead log (https://sqlite.org/fileformat2.html#the_write_ahead_log) and its index
 * (https://sqlite.org/walformat.html#the_wal_index_file_format). The index is read instead of the end of the log,
 * because it counts only frames that are committed and synced.
 */
export type WalState = {
  /** The salts of the log in hex; they change when the log restarts from its beginning. */
  salts: string;
  /** Committed frames. */
  frames: number;
  /** Frames that a checkpoint has copied to the database. */
  backfilled: number;
  pageSize: number;
};

/** A place in the log: behind `frame`, counted from 1. `sum` is that frame's checksum in hex; empty for frame 0. */
export type WalPosition = { salts: string; frame: number; sum: string };

/** The newest image of each page that some consecutive transactions changed. */
export type Pages = {
  end: WalPosition;
  images: Map<number, Buffer>;
  /** Size of the database after the last transaction, in pages. */
  size: number;
  /** Frames that were read. */
  frames: number;
};

const WAL_HEADER = 32;
const FRAME_HEADER = 24;
const INDEX_BYTES = 100;
const READ_BYTES = 1 << 20;
const MAX_TRIES = 50;

/** The log is not what it was: another program checkpointed it, or its files were replaced. */
export class WalChanged extends Error {}

/**
 * Reads the log of the database `file`, which must be open in this process. Its files stay open until `close`, which
 * must not be called before the database is closed: closing any descriptor of a file releases the locks that this
 * process has on it (POSIX), SQLite's included.
 */
export class WalReader {
  readonly #file: string;
  readonly #index: FileHandle;
  readonly #database: FileHandle;
  #log: FileHandle | null = null;

  private constructor(file: string, { index, database }: { index: FileHandle; database: FileHandle }) {
    this.#file = file;
    this.#index = index;
    this.#database = database;
  }

  static async open(file: string): Promise<WalReader> {
    return new WalReader(file, { index: await open(`${file}-shm`, "r"), database: await open(file, "r") });
  }

  async state(): Promise<WalState> {
    const bytes = Buffer.alloc(INDEX_BYTES);
    for (let attempt = 0; attempt < MAX_TRIES; attempt++) {
      await this.#index.read(bytes, 0, INDEX_BYTES, 0);
      // A writer updates the second copy first; a reader uses neither while they differ.
      if (!bytes.subarray(0, 48).equals(bytes.subarray(48, 96))) continue;
      const size = bytes.readUInt16LE(14);
      return {
        salts: bytes.toString("hex", 32, 40),
        frames: bytes.readUInt32LE(16),
        backfilled: bytes.readUInt32LE(96),
        pageSize: size === 1 ? 65_536 : size,
      };
    }
    throw new WalChanged("The index of the write-ahead log is inconsistent.");
  }

  /** Whether the log still contains `position`. */
  async has(position: WalPosition, state: WalState): Promise<boolean> {
    if (position.salts !== state.salts || position.frame > state.frames || position.frame === 0) return false;
    const header = await this.#read(FRAME_HEADER, offsetOf(position.frame, state.pageSize));
    return header.toString("hex", 8, 16) === position.salts && header.toString("hex", 16, 24) === position.sum;
  }

  /**
   * Reads the frames behind `from`, up to frame `to`, which ends a transaction. Stops at the end of an earlier
   * transaction once there are `maxPages`. Throws WalChanged.
   */
  async read(from: WalPosition, to: number, { maxPages, pageSize }: { maxPages: number; pageSize: number }) {
    const frameBytes = FRAME_HEADER + pageSize;
    const perRead = Math.max(1, Math.floor(READ_BYTES / frameBytes));
    const images = new Map<number, Buffer>();
    for (let frame = from.frame + 1; frame <= to; ) {
      const count = Math.min(perRead, to - frame + 1);
      const bytes = await this.#read(count * frameBytes, offsetOf(frame, pageSize));
      for (let at = 0; at < bytes.length; at += frameBytes, frame++) {
        if (bytes.toString("hex", at + 8, at + 16) !== from.salts)
          throw new WalChanged(`Frame ${frame} of the write-ahead log belongs to another log.`);
        images.set(bytes.readUInt32BE(at), bytes.subarray(at + FRAME_HEADER, at + frameBytes));
        const size = bytes.readUInt32BE(at + 4);
        if (size === 0 || (frame < to && images.size < maxPages)) continue;
        const end = { salts: from.salts, frame, sum: bytes.toString("hex", at + 16, at + 24) };
        return { end, images, size, frames: frame - from.frame } satisfies Pages;
      }
    }
    throw new WalChanged(`Frame ${to} of the write-ahead log does not end a transaction.`);
  }

  /** Changes whenever a checkpoint writes the database file. Not its ctime, which a change of its mode updates too. */
  async databaseVersion(): Promise<string> {
    const { size, mtimeNs } = await this.#database.stat({ bigint: true });
    return `${size} ${mtimeNs}`;
  }

  /** The database file itself, piece by piece. A page that a checkpoint writes at the same time may be torn. */
  async *databasePieces(): AsyncGenerator<Buffer> {
    for (let at = 0; ; ) {
      const piece = Buffer.allocUnsafe(READ_BYTES);
      const { bytesRead } = await this.#database.read(piece, 0, READ_BYTES, at);
      if (bytesRead === 0) return;
      at += bytesRead;
      yield piece.subarray(0, bytesRead);
    }
  }

  async close(): Promise<void> {
    for (const handle of [this.#index, this.#database, this.#log]) await handle?.close();
  }

  async #read(length: number, at: number): Promise<Buffer> {
    // No lock of SQLite is on this file.
    this.#log ??= await open(`${this.#file}-wal`, "r");
    const bytes = Buffer.allocUnsafe(length);
    const { bytesRead } = await this.#log.read(bytes, 0, length, at);
    if (bytesRead < length) throw new WalChanged("The write-ahead log is shorter than its index says.");
    return bytes;
  }
}

const offsetOf = (frame: number, pageSize: number) => WAL_HEADER + (frame - 1) * (FRAME_HEADER + pageSize);

import fs from "node:fs";
import type { ServerResponse } from "node:http";
import { promisify } from "node:util";
import { type FileBody, tornFile } from "../../storage/objects/read-file.ts";

const PIECE_BYTES = 256 * 1024;
const POOLED = 64;
/** With more than these, each holds one piece alone: then memory is dearer than the overlap of reading and sending. */
const FEW = 32;

const readFd = promisify(fs.read) as unknown as (
  fd: number,
  buffer: Buffer,
  ...at: [offset: number, length: number, position: number]
) => Promise<{ bytesRead: number }>;
const closeFd = promisify(fs.close);
const pool: Buffer[] = [];
let sending = 0;

type Head = { status: number; headers: string[] };

/**
 * A file from the disk through buffers that are used again: a stream's new ones, and the page faults of each, cost half
 * of the speed. False where the stream is somebody's already. `ended` is told how many bytes the connection did not take.
 */
export function sendFile(
  outgoing: ServerResponse,
  { status, headers }: Head,
  body: FileBody,
  ended: ((unsentBytes: number) => void) | undefined,
): boolean {
  const file = body.takeFile();
  if (!file) return false;
  void (async () => {
    let unsent = file.end - file.start + 1;
    let next: Promise<Buffer> | null = null;
    // What waits in a response that never gets its turn on the connection is told nothing else.
    let onGone = (_: Error) => {};
    outgoing.once("close", () => onGone(new Error("The client has left.")));
    const written = (piece: Buffer) =>
      new Promise<void>((resolve, reject) => {
        onGone = reject;
        outgoing.write(piece, (error) => (error ? reject(error) : resolve()));
      });
    const read = async (position: number): Promise<Buffer> => {
      const buffer = pool.pop() ?? Buffer.allocUnsafeSlow(PIECE_BYTES);
      const length = Math.min(PIECE_BYTES, file.end - position + 1);
      const { bytesRead } = await readFd(file.fd, buffer, 0, length, position);
      if (bytesRead === 0) throw tornFile();
      return buffer.subarray(0, bytesRead);
    };
    sending++;
    try {
      next = read(file.start);
      for (let position = file.start; next; ) {
        const piece: Buffer = await next;
        position += piece.length;
        const isLast = position > file.end;
        next = !isLast && sending <= FEW ? read(position) : null;
        if (!outgoing.headersSent) outgoing.writeHead(status, headers);
        await written(piece);
        unsent -= piece.length;
        // One that could not be sent is never used again: the system may still be at it.
        if (pool.length < POOLED) pool.push(Buffer.from(piece.buffer));
        if (!isLast) next ??= read(position);
      }
      outgoing.end();
    } catch {
      if (outgoing.headersSent) outgoing.destroy();
      else outgoing.writeHead(500).end();
    } finally {
      sending--;
      // The number may be another file's as soon as it is closed.
      await next?.catch(() => {});
      await closeFd(file.fd).catch(() => {});
      ended?.(unsent);
    }
  })();
  return true;
}

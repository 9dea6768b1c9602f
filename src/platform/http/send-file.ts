import fs from "node:fs";
import type { ServerResponse } from "node:http";
import { promisify } from "node:util";
import { type FileBody, tornFile } from "#storage/objects/read-file.ts";

const PIECE_BYTES = 256 * 1024;
const POOLED = 64;
/**
 * With more concurrent responses than this, each uses a single buffer: memory matters more than overlapping reads and
 * writes.
 */
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
 * Sends a file from disk through pooled buffers: a stream allocates new ones, whose page faults cost half the
 * throughput. Returns false when the stream is already in use. `ended` receives the number of bytes that the connection
 * did not accept.
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
    // A response that is queued behind others and never sent receives no other event.
    let onGone = (_: Error) => {};
    outgoing.once("close", () => onGone(new Error("The client closed the connection.")));
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
        // A buffer that could not be sent is never reused: the kernel may still read it.
        if (pool.length < POOLED) pool.push(Buffer.from(piece.buffer));
        if (!isLast) next ??= read(position);
      }
      outgoing.end();
    } catch {
      if (outgoing.headersSent) outgoing.destroy();
      else outgoing.writeHead(500).end();
    } finally {
      sending--;
      // The descriptor may belong to another file as soon as it is closed.
      await next?.catch(() => {});
      await closeFd(file.fd).catch(() => {});
      ended?.(unsent);
    }
  })();
  return true;
}

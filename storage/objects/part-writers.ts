import { type AcquireLock, withLock } from "#lib/base";
import { NoSuchMultipart, type Part, PartsMismatch } from "./store.ts";

type Writer = {
  abort: AbortController;
  ended: Promise<unknown>;
  /** The later writer has the higher one. */
  number: number;
};

/** `number` is of `next()`. */
type PartWriter = { uploadId: string; partNumber: number; number: number; signal: AbortSignal | undefined };

/**
 * Orders the writers of the parts of multipart uploads: of two writers of a part the later one wins, and an upload that
 * is completed or aborted has none. `take` extends this to the other processes of the server.
 */
export function partWriters(take?: AcquireLock) {
  let last = 0;
  /** By upload and part. */
  const writers = new Map<string, Map<number, Writer>>();
  /** Uploads that are being completed or aborted accept no more bytes: the file is about to become an object. */
  const closed = new Set<string>();

  /** Aborts all writers of the upload, in this and other processes, and admits none while `work` runs. */
  async function whileClosed<T>(uploadId: string, work: () => Promise<T>): Promise<T> {
    closed.add(uploadId);
    try {
      const running = [...(writers.get(uploadId)?.values() ?? [])];
      for (const { abort } of running) abort.abort(new NoSuchMultipart());
      await Promise.allSettled(running.map(({ ended }) => ended));
      return await withLock(take, `parts ${uploadId}`, { options: { newest: true }, work });
    } finally {
      closed.delete(uploadId);
    }
  }

  /**
   * Concurrent with writers of other parts, but not while the upload is closed; the newest writer of a part aborts the
   * others.
   */
  const whileOpen = (uploadId: string, partNumber: number, abort: AbortController, work: () => Promise<Part>) =>
    withLock(take, `parts ${uploadId}`, {
      options: { shared: true },
      work: (closing) => {
        closing?.addEventListener("abort", () => abort.abort(new NoSuchMultipart()), { once: true });
        return withLock(take, `parts ${uploadId} ${partNumber}`, {
          options: { newest: true },
          work: (again) => {
            again?.addEventListener("abort", () => abort.abort(sentAgain(partNumber)), { once: true });
            if (again?.aborted) abort.abort(sentAgain(partNumber));
            if (closing?.aborted) abort.abort(new NoSuchMultipart());
            return work();
          },
        });
      },
    });

  /**
   * Runs `work` as the writer of a part, when the earlier one has ended. Its signal aborts when a later writer of the
   * part arrives, or the upload is closed. Throws PartsMismatch, NoSuchMultipart.
   */
  async function write(
    { uploadId, partNumber, number, signal: given }: PartWriter,
    work: (signal: AbortSignal) => Promise<Part>,
  ): Promise<Part> {
    const running = writers.get(uploadId) ?? new Map<number, Writer>();
    const earlier = running.get(partNumber);
    const again = sentAgain(partNumber);
    if (earlier && earlier.number > number) throw again;
    earlier?.abort.abort(again);
    const abort = new AbortController();
    const signal = given ? AbortSignal.any([given, abort.signal]) : abort.signal;
    const written = Promise.resolve(earlier?.ended.catch(() => {})).then(() => {
      // Closed in the meantime; and `whileClosed` always sees a writer that begins.
      if (closed.has(uploadId)) throw new NoSuchMultipart();
      return whileOpen(uploadId, partNumber, abort, () => work(signal));
    });
    const writer = { abort, ended: written, number };
    writers.set(uploadId, running.set(partNumber, writer));
    try {
      return await written;
    } finally {
      if (running.get(partNumber) === writer) running.delete(partNumber);
      if (running.size === 0 && writers.get(uploadId) === running) writers.delete(uploadId);
    }
  }

  return {
    /** The number of a new writer, which is higher than all earlier ones. */
    next: () => ++last,
    isClosed: (uploadId: string) => closed.has(uploadId),
    whileClosed,
    write,
  };
}

const sentAgain = (partNumber: number) => new PartsMismatch(`Part ${partNumber} is being uploaded again.`);

/** The bytes of an upload. */
export type Source = {
  /** In bytes. */
  size: number;
  filename?: string | undefined;
  type?: string | undefined;
  /** Identifies the file and its version, so that an interrupted upload of it can be resumed. */
  identity?: string | undefined;
  /** The bytes from `start` to `end` (exclusive). A call never begins before the previous one did. */
  read(start: number, end: number): Promise<Blob | Uint8Array<ArrayBuffer>>;
  close?(): Promise<void>;
};

export function blobSource(blob: Blob): Source {
  const { size, type } = blob;
  const read = async (start: number, end: number) => blob.slice(start, end);
  if (!("name" in blob)) return { size, type, read };
  const { name, lastModified } = blob as File;
  return { size, type, filename: name, identity: JSON.stringify([name, size, type, lastModified]), read };
}

/**
 * A stream of `size` bytes. Of what was read only the range of the last call is kept: an upload that is resumed reads the
 * stream from its beginning, and skips what the server has.
 */
export function streamSource(stream: AsyncIterable<Uint8Array> | ReadableStream<Uint8Array>, size: number): Source {
  const chunks = chunksOf(stream);
  let kept: Uint8Array[] = [];
  let keptFrom = 0;
  let keptTo = 0;
  const dropBefore = (start: number) => {
    while (kept[0] && keptFrom + kept[0].length <= start) keptFrom += (kept.shift() as Uint8Array).length;
  };
  return {
    size,
    async read(start, end) {
      if (start < keptFrom) throw new Error("The stream cannot be read again from an earlier position.");
      dropBefore(start);
      while (keptTo < end) {
        const { value, done } = await chunks.next();
        if (done) throw new Error(`The stream ended after ${keptTo} of ${size} bytes.`);
        kept.push(value);
        keptTo += value.length;
        dropBefore(start);
      }
      return joined(kept, start - keptFrom, end - start);
    },
    async close() {
      kept = [];
      await chunks.return?.();
    },
  };
}

function joined(chunks: Uint8Array[], skip: number, length: number): Uint8Array<ArrayBuffer> {
  const result = new Uint8Array(length);
  let at = -skip;
  for (const chunk of chunks) {
    const from = Math.max(0, -at);
    const part = chunk.subarray(from, Math.max(from, length - at));
    if (part.length > 0) result.set(part, at + from);
    at += chunk.length;
    if (at >= length) break;
  }
  return result;
}

/** Safari has no asynchronous iteration of streams. */
async function* chunksOf(
  stream: AsyncIterable<Uint8Array> | ReadableStream<Uint8Array>,
): AsyncGenerator<Uint8Array, void, undefined> {
  if (Symbol.asyncIterator in stream) return yield* stream as AsyncIterable<Uint8Array>;
  const reader = (stream as ReadableStream<Uint8Array>).getReader();
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    await reader.cancel();
  }
}

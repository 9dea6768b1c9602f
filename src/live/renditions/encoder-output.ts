import { FragmentReader } from "./fragment-reader.ts";
import type { Rendition } from "./rendition.ts";

/** Bytes that wait for the disk, before no more are read from the encoder. */
const MAX_PENDING_BYTES = 8 * 2 ** 20;

/**
 * Adds what an encoder sends to the renditions, which are its tracks in order. Resolves at the end of the body. Throws Error for
 * what is malformed, and the error of the body.
 */
export async function readEncoder(body: AsyncIterable<Buffer>, renditions: readonly Rendition[]): Promise<void> {
  const byId = new Map<number, Rendition>();
  const reader = new FragmentReader({
    onTracks(tracks) {
      if (tracks.length !== renditions.length) throw new Error("The encoder has another number of tracks.");
      for (const [index, { id, configuration }] of tracks.entries()) {
        const rendition = renditions[index] as Rendition;
        rendition.begin(configuration);
        byId.set(id, rendition);
      }
    },
    onSample: (sample) => byId.get(sample.id)?.add(sample),
  });
  for await (const chunk of body) {
    reader.push(chunk);
    if (renditions.reduce((sum, { pendingBytes }) => sum + pendingBytes, 0) > MAX_PENDING_BYTES)
      await Promise.all(renditions.map((one) => one.settled()));
  }
}

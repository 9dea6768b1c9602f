import { rm, stat } from "node:fs/promises";
import { extname, join } from "node:path";
import { sha256 } from "../../src/lib/tokens.ts";
import type { Binaries } from "../../src/media/ffmpeg.ts";
import { fileAt } from "../push/send.ts";
import type { File } from "../push/state.ts";
import { discard, download } from "./download.ts";
import { takeHls } from "./hls.ts";
import type { Ledger } from "./ledger.ts";
import { type Item, ItemError, type Listed, type Source } from "./source.ts";

export type Obtaining = {
  source: Source;
  ledger: Ledger;
  /** Directory of incomplete and not yet uploaded files. */
  dir: string;
  maxBytes: number;
  binaries(): Promise<Binaries>;
  onBytes(bytes: number): void;
};

/** A file on this machine, and its name for the server. `release` removes a downloaded one. */
export type Obtained = { file: File; filename: string; release(): Promise<void> };

/** Downloads the file of a video, unless it is here. Throws ItemError. */
export async function obtain(
  { source, ledger, dir, maxBytes, binaries, onBytes }: Obtaining,
  listed: Listed,
  item: Item,
): Promise<Obtained> {
  const { media, filename } = item;
  if (media.kind === "local") return { file: await fileAt(media.path), filename, release: async () => {} };
  const { client } = source;
  if (client === null) throw new ItemError("the source has no server");
  const path = join(dir, sha256(listed.id).slice(0, 32));
  const earlier = ledger.get(listed.id)?.bytes;
  if (media.kind === "hls") {
    // A name for what the segments contain.
    const named = (at: string) => ({
      filename: (extname(filename) ? filename.slice(0, -extname(filename).length) : filename) + extname(at),
    });
    const release = () => rm(`${path}.hls`, { recursive: true, force: true });
    for (const name of ["both.mp4", "video.mp4", "video.ts"]) {
      const at = join(`${path}.hls`, name);
      if (earlier !== undefined && (await sizeOf(at)) === earlier)
        return { file: await fileAt(at), ...named(at), release };
    }
    const taking = takeHls({ client, url: media.url, dir: `${path}.hls`, maxBytes, binaries, onBytes });
    const at = await taking.catch(async (error) => {
      await release();
      throw error;
    });
    return recorded(await fileAt(at), { ...named(at), release });
  }
  const release = () => discard(path);
  if (earlier !== undefined && (await sizeOf(path)) === earlier) return { file: await fileAt(path), filename, release };
  await download({
    ...{ client, path, media, maxBytes, onBytes },
    async refresh() {
      const { media: fresh } = await source.load(listed, { isDryRun: false });
      return fresh.kind === "remote" ? fresh : null;
    },
  });
  return recorded(await fileAt(path), { filename, release });

  function recorded(file: File, rest: Omit<Obtained, "file">): Obtained {
    // The upload of the file by a later run must be of the same bytes.
    ledger.put(listed.id, { bytes: file.bytes });
    return { file, ...rest };
  }
}

const sizeOf = async (path: string) => (await stat(path).catch(() => null))?.size ?? null;

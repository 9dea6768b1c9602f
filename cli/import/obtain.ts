import { rm, stat } from "node:fs/promises";
import { extname, join } from "node:path";
import { sha256 } from "#lib/base";
import type { Binaries } from "#media/ffmpeg.ts";
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

/** A file on this machine, and its name for the server. */
export type Obtained = { file: File; filename: string };

const pathOf = (dir: string, id: string) => join(dir, sha256(id).slice(0, 32));

/** Removes what was downloaded of a video. */
export async function discardDownload(dir: string, id: string): Promise<void> {
  await discard(pathOf(dir, id));
  await rm(`${pathOf(dir, id)}.hls`, { recursive: true, force: true });
}

/** Downloads the file of a video, unless it is here. Throws ItemError. */
export async function obtain(
  { source, ledger, dir, maxBytes, binaries, onBytes }: Obtaining,
  listed: Listed,
  item: Item,
): Promise<Obtained> {
  const { media, filename } = item;
  if (media.kind === "local") return { file: await fileAt(media.path), filename };
  const { client } = source;
  if (client === null) throw new ItemError("the source has no server");
  const path = pathOf(dir, listed.id);
  const earlier = ledger.get(listed.id)?.bytes;
  if (media.kind === "hls") {
    // A name for what the segments contain.
    const named = (at: string) => ({
      filename: (extname(filename) ? filename.slice(0, -extname(filename).length) : filename) + extname(at),
    });
    for (const name of ["both.mp4", "video.mp4", "video.ts"]) {
      const at = join(`${path}.hls`, name);
      if (earlier !== undefined && (await sizeOf(at)) === earlier) return { file: await fileAt(at), ...named(at) };
    }
    const taking = takeHls({ client, url: media.url, dir: `${path}.hls`, maxBytes, binaries, onBytes });
    const at = await taking.catch(async (error) => {
      // Segments are not continued.
      await discardDownload(dir, listed.id);
      throw error;
    });
    return recorded(await fileAt(at), named(at));
  }
  if (earlier !== undefined && (await sizeOf(path)) === earlier) return { file: await fileAt(path), filename };
  await download({
    client,
    path,
    media,
    maxBytes,
    onBytes,
    async refresh() {
      const { media: fresh } = await source.load(listed, { isDryRun: false });
      return fresh.kind === "remote" ? fresh : null;
    },
  });
  return recorded(await fileAt(path), { filename });

  function recorded(file: File, rest: Omit<Obtained, "file">): Obtained {
    // The upload of the file by a later run must be of the same bytes.
    ledger.put(listed.id, { bytes: file.bytes });
    return { file, ...rest };
  }
}

const sizeOf = async (path: string) => (await stat(path).catch(() => null))?.size ?? null;

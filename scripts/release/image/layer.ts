import { createHash, type Hash } from "node:crypto";
import { createReadStream, createWriteStream, renameSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGzip } from "node:zlib";
import { type Header, pack } from "tar-stream";

/** A file, directory or symbolic link of an image. `path` is relative to its root; `owner` is the user and group id. */
export type Entry = { path: string; mode?: number; owner?: number } & (
  | { kind: "folder" }
  | { kind: "text"; text: string }
  | { kind: "file"; from: string }
  | { kind: "link"; target: string }
);

/** A content-addressed file: what a manifest refers to. */
export type Blob = { digest: string; size: number };
/** `diffId` is the digest of the uncompressed layer. */
export type Layer = Blob & { diffId: string };

/**
 * Writes a gzip-compressed layer into `blobs`, named by its digest. The same entries and time give the same bytes:
 * entries are sorted, and all have that time.
 */
export async function writeLayer(entries: Entry[], time: Date, blobs: string, level = 9): Promise<Layer> {
  const tar = pack();
  const plain = createHash("sha256");
  const compressed = createHash("sha256");
  const unfinished = join(blobs, `layer.${process.pid}`);
  const written = pipeline(
    tar,
    hashing(plain),
    createGzip({ level }),
    hashing(compressed),
    createWriteStream(unfinished),
  );
  for (const entry of withFolders(entries)) await addEntry(tar, entry, time);
  tar.finalize();
  await written;
  const digest = compressed.digest("hex");
  const { size } = statSync(unfinished);
  renameSync(unfinished, join(blobs, digest));
  return { digest: `sha256:${digest}`, size, diffId: `sha256:${plain.digest("hex")}` };
}

const hashing = (hash: Hash) =>
  new Transform({
    transform(chunk, _, done) {
      hash.update(chunk);
      done(null, chunk);
    },
  });

/** Sorted by path, with every directory that is missing. */
function withFolders(entries: Entry[]): Entry[] {
  const all = new Map<string, Entry>();
  for (const { path } of entries)
    for (let parent = dirname(path); parent !== "."; parent = dirname(parent))
      all.set(parent, { kind: "folder", path: parent });
  for (const entry of entries) all.set(entry.path, entry);
  return [...all.values()].sort((a, b) => (a.path < b.path ? -1 : 1));
}

export async function addEntry(tar: ReturnType<typeof pack>, entry: Entry, time: Date): Promise<void> {
  const { path, mode, owner = 0 } = entry;
  const common: Partial<Header> & { name: string } = {
    name: path,
    uid: owner,
    gid: owner,
    mtime: time,
    mode: mode ?? defaultMode(entry),
  };
  if (entry.kind === "folder") tar.entry({ ...common, type: "directory" });
  if (entry.kind === "link") tar.entry({ ...common, type: "symlink", linkname: entry.target });
  if (entry.kind === "text") tar.entry(common, entry.text);
  if (entry.kind === "file")
    await pipeline(createReadStream(entry.from), tar.entry({ ...common, size: statSync(entry.from).size }));
}

const defaultMode = ({ kind }: Entry) => (kind === "folder" ? 0o755 : kind === "link" ? 0o777 : 0o644);

import { folderOf } from "#model/object-keys.ts";
import { ItemError, type Listed } from "../source.ts";

/** A file of a directory or bucket. `path` is relative, with slashes. */
export type TreeFile = {
  path: string;
  bytes: number;
  /** RFC 3339. */
  modifiedAt: string | null;
  /** The content of a small file. Throws ItemError. */
  read(maxBytes: number): Promise<Uint8Array>;
};
export type TreeItem = { video: TreeFile; sideCars: TreeFile[] };

const VIDEO =
  /\.(mp4|m4v|mov|mkv|webm|avi|mpg|mpeg|ts|m2ts|mts|vob|wmv|asf|flv|f4v|ogv|ogg|3gp|3g2|mxf|dv|gif|mp3|m4a|aac|wav|flac|aiff?|opus)$/i;
const SIDE_CAR = /\.(vtt|srt|ttml|dfxp|xml|json|nfo|jpe?g|png|webp)$/i;
/** Files that begin with the same characters up to a dot, and are held until all of them are listed. */
const MAX_GROUP = 100_000;

/** Whether a file is one that an import reads. Hidden files are not. */
export const isRelevant = (path: string): boolean =>
  !/(^|\/)\./.test(path) && (VIDEO.test(path) || SIDE_CAR.test(path));

const stemOf = (path: string) => path.slice(0, path.lastIndexOf("."));
const folderLength = (path: string) => folderOf(path).length;

/** What all files of one video begin with: their name up to its first dot, and the dot. */
export function groupOf(path: string): string {
  const dot = path.indexOf(".", folderLength(path));
  return path.slice(0, dot === -1 ? path.length : dot + 1);
}

/**
 * The videos of a tree with their side-car files. `files` come so that those of one group follow one another, as in any listing
 * that is sorted by names. Holds one group at a time.
 */
export async function* videosIn(files: AsyncIterable<TreeFile>): AsyncGenerator<Listed> {
  let group: TreeFile[] = [];
  let name = "";
  for await (const file of files) {
    const next = groupOf(file.path);
    if (next !== name) {
      yield* listedOf(group);
      group = [];
      name = next;
    }
    if (group.length === MAX_GROUP) throw new ItemError(`more than ${MAX_GROUP} files begin with ${name}`);
    group.push(file);
  }
  yield* listedOf(group);
}

function* listedOf(group: readonly TreeFile[]): Generator<Listed> {
  const videos = group.filter(({ path }) => VIDEO.test(path));
  if (videos.length === 0) return;
  const stems = new Map<string, TreeFile[]>(videos.map(({ path }) => [stemOf(path), []]));
  for (const file of group) {
    if (VIDEO.test(file.path)) continue;
    // The longest one: film.part.en.vtt belongs to film.part.mp4 where there is also film.mp4.
    for (let stem = stemOf(file.path); stem.length > folderLength(file.path); stem = shorter(stem)) {
      const sideCars = stems.get(stem);
      if (!sideCars) continue;
      sideCars.push(file);
      break;
    }
  }
  for (const video of videos) {
    const { path, bytes } = video;
    const data: TreeItem = { video, sideCars: stems.get(stemOf(path)) ?? [] };
    yield { id: path, title: stemOf(path).slice(folderLength(path)) || path, seconds: null, bytes, data };
  }
}

/** Without its last part; empty when there is none. */
function shorter(stem: string): string {
  const dot = stem.lastIndexOf(".");
  return dot < folderLength(stem) ? "" : stem.slice(0, dot);
}

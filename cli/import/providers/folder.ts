import { readdir, readFile, realpath, stat } from "node:fs/promises";
import { join, sep } from "node:path";
import { UserError } from "#lib/base";
import { IMPORT_SOURCES } from "#model/import-sources.ts";
import { ItemError, type Listed, type Provider } from "../source.ts";
import { groupOf, isRelevant, type TreeFile, type TreeItem, videosIn } from "../tree/group.ts";
import { loadTreeItem } from "../tree/load.ts";

/** Video files of a directory and the directories in it, with side-car files. The id of a video is its relative path. */
export const folder: Provider = {
  ...IMPORT_SOURCES.folder,
  async open({ from }) {
    if (from === undefined) throw new UserError("Name the directory to import: vodbox import folder DIRECTORY.", 2);
    const root = await realpath(from).catch((error: NodeJS.ErrnoException) => {
      throw new UserError(`The directory ${from} cannot be read (${error.code}).`);
    });
    return {
      location: root,
      client: null,
      listsExactBytes: true,
      list: () => videosIn(filesIn(root, "")),
      async load({ data }: Listed) {
        const item = data as TreeItem;
        const { path, bytes } = item.video;
        await refuseOutside(root, path);
        return loadTreeItem(item, { kind: "local", path: join(root, path), bytes });
      },
    };
  },
};

/** Files first, then those of directories, each sorted so that a group is not interrupted. Links to directories are not followed. */
async function* filesIn(root: string, below: string): AsyncGenerator<TreeFile> {
  const entries = await readdir(join(root, below), { withFileTypes: true }).catch((error: NodeJS.ErrnoException) => {
    if (below === "") throw new UserError(`The directory ${root} cannot be read (${error.code}).`);
    throw new ItemError(`the directory ${below} cannot be read (${error.code})`);
  });
  const names = (of: typeof entries) => of.map(({ name }) => name).sort();
  const files = entries.filter((entry) => entry.isFile() || entry.isSymbolicLink());
  const relevant = names(files).filter((name) => isRelevant(name));
  // By group first: in the order of names, `a-b.mp4` is between `a` and `a.mp4`.
  for (const name of relevant.toSorted((a, b) => compare(groupOf(a), groupOf(b)))) {
    const path = below + name;
    const info = await stat(join(root, path)).catch(() => null);
    if (info !== null && !info.isFile()) continue;
    yield {
      path,
      bytes: info?.size ?? 0,
      modifiedAt: info?.mtime.toISOString() ?? null,
      async read(maxBytes) {
        if ((info?.size ?? 0) > maxBytes) throw new ItemError(`it has more than ${maxBytes} bytes`);
        await refuseOutside(root, path);
        return readFile(join(root, path)).catch((error: NodeJS.ErrnoException) => {
          throw new ItemError(`it cannot be read (${error.code})`);
        });
      },
    };
  }
  for (const name of names(entries.filter((entry) => entry.isDirectory() && !entry.name.startsWith("."))))
    yield* filesIn(root, `${below}${name}/`);
}

/** The author of a tree may be someone else, and must not choose which other files of this machine are uploaded. */
async function refuseOutside(root: string, path: string): Promise<void> {
  const real = await realpath(join(root, path)).catch((error: NodeJS.ErrnoException) => {
    throw new ItemError(`it cannot be read (${error.code})`);
  });
  if (!real.startsWith(root.endsWith(sep) ? root : root + sep))
    throw new ItemError("it is a symbolic link to a file outside of the directory");
}

const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);

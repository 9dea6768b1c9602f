import { link as hardLink, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { codeOf, type Folders } from "./folders.ts";
import { InvalidKey, pathOf } from "./keys.ts";
import { infoOf, statFile } from "./list-files.ts";
import { asStorageFull, type SpaceGuard } from "./space.ts";
import type { ObjectInfo, PutOptions } from "./store.ts";

export type Temporary = Awaited<ReturnType<Folders["temporary"]>>;

/** Creates the files of objects in a local store. */
export function localWrites(folders: Folders, space: SpaceGuard) {
  /**
   * Fills a temporary file with `fill`, then moves it to `key`: complete and durable, or not at all. `bytes` is the
   * announced size. Throws InvalidKey and StorageFull.
   */
  async function write(
    key: string,
    bytes: number | undefined,
    fill: (temporary: Temporary) => Promise<void>,
    { confirm, lock = (work) => work() }: Pick<PutOptions, "confirm" | "lock"> = {},
  ): Promise<ObjectInfo> {
    const path = pathOf(folders.root, key);
    const folder = dirname(path);
    let temporary: Temporary | null = null;
    try {
      await space.ensure(bytes);
      // Before the bytes arrive: an invalid key is reported immediately.
      await folders.ensure(folder);
      temporary = await folders.temporary();
      await fill(temporary);
      await temporary.file.sync();
      const stat = await temporary.file.stat({ bigint: true });
      const placed = temporary.path;
      // After the sync, which takes seconds for a large file: what `confirm` finds is still true at the rename.
      await lock(async () => {
        await confirm?.();
        await folders.place(placed, path);
      });
      await folders.sync(folder);
      return infoOf(key, stat);
    } catch (error) {
      if (temporary) await rm(temporary.path, { force: true });
      if (await folders.isOwn(folder)) await folders.prune(folder);
      if (codeOf(error) === "EISDIR")
        throw new InvalidKey("Other objects have this key as prefix; local storage cannot store both.");
      throw asStorageFull(error);
    } finally {
      await temporary?.file.close();
    }
  }

  /**
   * An object's file is never modified, only replaced, so two keys can be hard links. Null where links are not
   * possible.
   */
  async function link(source: string, key: string): Promise<ObjectInfo | null> {
    const path = pathOf(folders.root, key);
    const folder = dirname(path);
    try {
      await folders.ensure(folder);
      await hardLink(source, path);
    } catch (error) {
      if (error instanceof InvalidKey) throw error;
      return null;
    }
    await folders.sync(folder);
    const stat = await statFile(path);
    return stat && infoOf(key, stat);
  }

  return { write, link };
}

/** A file with its path in the folder that was dropped or chosen; null when it is not in one. */
export type FoundFile = { file: File; path: string | null };

/** Files of a drop, also those in folders, which are read through to their end. */
export async function filesOf({ items, files }: DataTransfer): Promise<FoundFile[]> {
  // Entries must be taken before the first await: the browser empties the list after the event.
  const entries = [...items].map((item) => item.webkitGetAsEntry()).filter((entry) => entry !== null);
  if (entries.length === 0) return [...files].map((file) => ({ file, path: null }));
  const found: FoundFile[] = [];
  for (const entry of entries) await collect(entry, found, false);
  return found;
}

/** Files of an input; that of a folder has their paths. Hidden ones are those of the operating system. */
export const chosenFiles = (files: FileList | null): FoundFile[] =>
  [...(files ?? [])]
    .filter(({ name, webkitRelativePath }) => webkitRelativePath === "" || !name.startsWith("."))
    .map((file) => ({ file, path: file.webkitRelativePath || null }));

async function collect(entry: FileSystemEntry, found: FoundFile[], isInFolder: boolean): Promise<void> {
  if (entry.isFile) {
    const file = await new Promise<File>((resolve, reject) => (entry as FileSystemFileEntry).file(resolve, reject));
    if (!file.name.startsWith(".")) found.push({ file, path: isInFolder ? entry.fullPath.replace(/^\//, "") : null });
    return;
  }
  const reader = (entry as FileSystemDirectoryEntry).createReader();
  // A browser returns at most a hundred entries at once.
  for (;;) {
    const some = await new Promise<FileSystemEntry[]>((resolve, reject) => reader.readEntries(resolve, reject));
    if (some.length === 0) return;
    for (const each of some) await collect(each, found, true);
  }
}

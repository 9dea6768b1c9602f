import { VodboxError } from "#clients/typescript/error.ts";
import { blobSource } from "#clients/typescript/upload/source.ts";
import type { ResumeStorage } from "#clients/typescript/upload/storage.ts";
import { findUpload } from "#clients/typescript/upload/tus.ts";
import { vodbox } from "#web/console/api.ts";

/** An upload that an earlier page began. */
export type Unfinished = {
  key: string;
  uploadId: number;
  name: string;
  /** In bytes. */
  size: number;
  /** Bytes that the server has. */
  sent: number;
};

/** What localStorage keeps of an upload. */
type Entry = { uploadId: number; name: string; size: number };

/** Requests at the same time. */
const CONCURRENT = 4;

const prefixOf = (owner: string) => `vodbox.upload.${owner}.`;

/** Identifies a file, as the client does: by name, size, type and modification time. */
export const identityOf = (file: File) => blobSource(file).identity as string;

/** Where the uploads of one tenant are remembered until they are complete, each with the name of its file. */
export function storageFor(owner: string, file: File): ResumeStorage {
  const own = prefixOf(owner) + identityOf(file);
  return {
    get: () => String(entryOf(own)?.uploadId ?? ""),
    set(_, value) {
      try {
        const entry: Entry = { uploadId: Number(value), name: file.name, size: file.size };
        localStorage.setItem(own, JSON.stringify(entry));
      } catch {
        // Full or forbidden: the upload works, and cannot be resumed.
      }
    },
    remove: () => forget(own),
  };
}

export function forget(key: string): void {
  try {
    localStorage.removeItem(key);
  } catch {
    // As above.
  }
}

export const isSameFile = (owner: string, key: string, file: File) => key === prefixOf(owner) + identityOf(file);

/** The uploads that can be continued, with what the server has of them. Those that have ended are forgotten. */
export async function listUnfinished(owner: string, isRunning: (key: string) => boolean): Promise<Unfinished[]> {
  const keys = keysOf(owner).filter((key) => !isRunning(key));
  const found: Unfinished[] = [];
  const next = async (): Promise<void> => {
    for (let key = keys.pop(); key !== undefined; key = keys.pop()) {
      const entry = entryOf(key);
      if (!entry) forget(key);
      else {
        const sent = await sentOf(entry);
        if (sent === null) forget(key);
        else found.push({ key, ...entry, sent });
      }
    }
  };
  await Promise.all(Array.from({ length: CONCURRENT }, next));
  return found.sort((a, b) => b.uploadId - a.uploadId);
}

/** Ends an upload at the server, and deletes what it has of it (termination of tus). */
export async function discard({ key, uploadId }: Unfinished): Promise<void> {
  const { baseUrl, headers } = vodbox.options;
  const own = typeof headers === "function" ? headers() : headers;
  const response = await fetch(`${baseUrl}/api/v1/uploads/tus/${uploadId}`, {
    method: "DELETE",
    headers: { ...own, "Tus-Resumable": "1.0.0" },
  });
  if (!response.ok && response.status !== 404 && response.status !== 410)
    throw new Error(((await response.json().catch(() => null)) as { error?: string } | null)?.error ?? "");
  forget(key);
}

async function sentOf({ uploadId, size }: Entry): Promise<number | null> {
  try {
    const upload = await findUpload(vodbox.options, uploadId);
    return upload.length === size && upload.offset < size ? upload.offset : null;
  } catch (error) {
    if (error instanceof VodboxError && [403, 404, 410].includes(error.status)) return null;
    throw error;
  }
}

function keysOf(owner: string): string[] {
  try {
    return Object.keys(localStorage).filter((key) => key.startsWith(prefixOf(owner)));
  } catch {
    return [];
  }
}

/** Null for what is not ours: other programs of the same origin write there too. */
function entryOf(key: string): Entry | null {
  try {
    const { uploadId, name, size } = JSON.parse(localStorage.getItem(key) ?? "null") as Entry;
    return Number.isSafeInteger(uploadId) && typeof name === "string" && Number.isSafeInteger(size)
      ? { uploadId, name, size }
      : null;
  } catch {
    return null;
  }
}

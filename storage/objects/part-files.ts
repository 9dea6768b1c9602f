import { randomBytes } from "node:crypto";
import { constants } from "node:fs";
import { mkdir, open, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { isBelow } from "#model/object-keys.ts";
import { codeOf, type Folders, syncFolder } from "./folders.ts";
import { checkPrefix, PARTS_FOLDER, temporaryName } from "./keys.ts";
import type { Multipart, Part } from "./store.ts";

/** What is known at the start of an upload; `startedAt` in RFC 3339. */
export type Plan = { key: string; partSize: number; bytes: number; startedAt: string };

/**
 * The files of multipart uploads in a local store. Each upload has a directory with the data, the plan, and a marker
 * for each complete part: it is removed before the part is written again and created when its bytes are on disk, so a
 * torn part has none.
 */
export function partFiles(folders: Folders) {
  const parent = join(folders.root, PARTS_FOLDER);
  const folderOf = (uploadId: string) => join(parent, uploadId);
  const dataOf = (uploadId: string) => join(folderOf(uploadId), "data");
  const planOf = (uploadId: string) => join(folderOf(uploadId), "plan");
  const markerOf = (uploadId: string, partNumber: number) => join(folderOf(uploadId), String(partNumber));

  /** Resolves with the id of the upload. */
  async function create(plan: Plan): Promise<string> {
    const uploadId = randomBytes(16).toString("hex");
    const folder = folderOf(uploadId);
    try {
      await mkdir(folder, { recursive: true });
      await writeFile(dataOf(uploadId), "", { flag: "wx" });
      await writeWhole(planOf(uploadId), plan);
      await syncFolder(folder);
      await syncFolder(parent);
      await syncFolder(folders.root);
    } catch (error) {
      await rm(folder, { recursive: true, force: true });
      throw error;
    }
    return uploadId;
  }

  /** Null when there is no such upload. */
  async function readPlan(uploadId: string): Promise<Plan | null> {
    if (!/^[0-9a-f]{32}$/.test(uploadId)) return null;
    return readJson<Plan>(planOf(uploadId));
  }

  async function completeParts(uploadId: string): Promise<Map<number, Part>> {
    const parts = new Map<number, Part>();
    for (const name of await namesIn(folderOf(uploadId))) {
      if (!/^\d+$/.test(name)) continue;
      const part = await readJson<Part>(join(folderOf(uploadId), name));
      if (part) parts.set(part.partNumber, part);
    }
    return parts;
  }

  const mark = (uploadId: string, part: Part) => writeWhole(markerOf(uploadId, part.partNumber), part);

  async function unmark(uploadId: string, partNumber: number): Promise<void> {
    const marker = markerOf(uploadId, partNumber);
    if (!(await isThere(marker))) return;
    await rm(marker);
    // Otherwise the old marker could reappear after a power failure, for bytes that are partly new.
    await syncFolder(folderOf(uploadId));
  }

  async function remove(uploadId: string): Promise<void> {
    // The plan first: without it the rest is not an upload.
    await rm(planOf(uploadId), { force: true });
    await rm(folderOf(uploadId), { recursive: true, force: true });
  }

  async function* listAll(prefix: string): AsyncGenerator<Multipart> {
    checkPrefix(prefix);
    for (const uploadId of await namesIn(parent)) {
      const plan = await readPlan(uploadId);
      if (plan && isBelow(prefix, plan.key)) yield { key: plan.key, uploadId, startedAt: new Date(plan.startedAt) };
    }
  }

  /** Deletes what an abort or a completion left when the process died. */
  async function sweep(): Promise<number> {
    let swept = 0;
    for (const name of await namesIn(parent)) {
      const folder = join(parent, name);
      if ((await isThere(join(folder, "plan"))) && (await isThere(join(folder, "data")))) continue;
      await rm(folder, { recursive: true, force: true });
      swept++;
    }
    return swept;
  }

  return { create, dataOf, readPlan, completeParts, mark, unmark, remove, listAll, sweep };
}

/** Null when it is missing or was truncated by a power failure. */
async function readJson<T>(path: string): Promise<T | null> {
  try {
    return JSON.parse(await readFile(path, "utf8")) as T;
  } catch (error) {
    if (error instanceof SyntaxError || ["ENOENT", "ENOTDIR"].includes(codeOf(error))) return null;
    throw error;
  }
}

async function writeWhole(path: string, value: unknown): Promise<void> {
  const temporary = `${path}.${temporaryName()}`;
  await writeFile(temporary, JSON.stringify(value), { flag: "wx", flush: true });
  await rename(temporary, path);
}

async function namesIn(folder: string): Promise<string[]> {
  return readdir(folder).catch((error) => {
    if (codeOf(error) === "ENOENT") return [];
    throw error;
  });
}

async function isThere(path: string): Promise<boolean> {
  try {
    await using _ = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW);
    return true;
  } catch (error) {
    if (codeOf(error) === "ENOENT") return false;
    throw error;
  }
}

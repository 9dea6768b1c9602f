import { createHash, randomUUID } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { cacheDir } from "#lib/executable";

export type File = { path: string; bytes: number; modifiedMs: number };
/**
 * `attempt` identifies the initiate request, so that one whose response was lost can be repeated; `done` is used by
 * --watch for files that it pushed itself, or another run did. `batchId` belongs to a file that was encoded locally.
 */
export type State = { attempt: string; uploadId?: number; batchId?: number; done?: boolean };

/**
 * The state of pushing a file to a server, across runs. A changed file is another one. Synchronous: it is a few bytes,
 * and must be written before the process can be killed.
 */
export function stateOf(file: File, server: string, way: "as it is" | "encoded" = "as it is") {
  const folder = join(cacheDir(), "push");
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const name = createHash("sha256")
    .update(JSON.stringify([file.path, file.bytes, file.modifiedMs, server, ...(way === "encoded" ? [way] : [])]))
    .digest("hex")
    .slice(0, 32);
  const path = join(folder, `${name}.json`);
  const save = (state: State) => {
    const temporary = `${path}.${process.pid}`;
    writeFileSync(temporary, JSON.stringify({ ...state, path: file.path, server }), { mode: 0o600 });
    renameSync(temporary, path);
    return state;
  };
  return {
    name,
    save,
    load(): State | null {
      if (!existsSync(path)) return null;
      try {
        return JSON.parse(readFileSync(path, "utf8")) as State;
      } catch {
        return null;
      }
    },
    begin: () => save({ attempt: randomUUID() }),
    forget: () => rmSync(path, { force: true }),
  };
}

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type BlockProgress, changingPrograms, rewriteTransport } from "./rewrite.ts";
import type { TransportPrograms } from "./transport-programs.ts";

type Options = BlockProgress & { cwd?: string };

/**
 * Calls `use` with a rewritten copy of a transport stream whose tables change, which is then removed; returns null for any other
 * file.
 */
export async function withSteadyPrograms<Result>(
  path: string,
  { cwd = tmpdir(), ...progress }: Options,
  use: (copy: string, programs: TransportPrograms) => Promise<Result>,
): Promise<Result | null> {
  const programs = await changingPrograms(path, progress);
  if (!programs) return null;
  const folder = await mkdtemp(join(cwd, "programs-"));
  try {
    const copy = join(folder, "source.ts");
    await rewriteTransport(path, copy, programs, progress);
    return await use(copy, programs);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

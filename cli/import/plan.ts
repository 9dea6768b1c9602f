import { type Existing, tagOf } from "./existing.ts";
import type { Ledger } from "./ledger.ts";
import { ItemError, type Listed, type Source } from "./source.ts";

/** A provider that never ends its list would otherwise be read until the memory is full. */
const MAX_VIDEOS = 1_000_000;

export type Plan = {
  /** Without duplicates. */
  videos: number;
  seconds: number;
  /** The sum of the sizes that the source lists. */
  bytes: number;
  unknownBytes: number;
  /** Ids that were listed again. */
  duplicates: string[];
};

/** The videos of a source, each once. Throws ItemError for a list that does not end. */
export async function* videosOf(source: Source, onDuplicate: (id: string) => void = () => {}): AsyncGenerator<Listed> {
  const seen = new Set<string>();
  for await (const listed of source.list()) {
    if (seen.has(listed.id)) {
      onDuplicate(listed.id);
      continue;
    }
    if (seen.size === MAX_VIDEOS) throw new ItemError(`the list has more than ${MAX_VIDEOS} videos`);
    seen.add(listed.id);
    yield listed;
  }
}

/** Counts what a source has, before anything is copied. */
export async function planOf(source: Source): Promise<Plan> {
  const plan: Plan = { videos: 0, seconds: 0, bytes: 0, unknownBytes: 0, duplicates: [] };
  for await (const { seconds, bytes } of videosOf(source, (id) => plan.duplicates.push(id))) {
    plan.videos++;
    plan.seconds += seconds ?? 0;
    if (bytes === null) plan.unknownBytes++;
    else plan.bytes += bytes;
  }
  return plan;
}

/**
 * What a run does with a video: `import` it, `resume` an interrupted import, only `verify` it, or nothing (`done`).
 * `changed`: it was imported, but is another file now.
 */
export type Action = "import" | "resume" | "verify" | "done" | "changed";

export function actionFor(
  listed: Listed,
  { source, ledger, existing }: { source: Source; ledger: Ledger; existing: Map<string, Existing> },
): Action {
  const entry = ledger.get(listed.id);
  const known = existing.get(tagOf(listed.id));
  if (!known) return "import";
  if (!known.isUploaded) return "resume";
  if (source.listsExactBytes && listed.bytes !== null && listed.bytes !== known.bytes) return "changed";
  const hasProblems = (entry?.problems?.length ?? 0) > 0;
  if (entry?.stage === undefined || entry.stage === "uploaded" || hasProblems) return "resume";
  return entry.stage === "verified" ? "done" : "verify";
}

/**
 * Runs `work` for each item as it arrives, at most `atOnce` at a time, and reads no further ahead. The first error ends it, once
 * the works in progress have ended.
 */
export async function forEachBounded<T>(
  items: AsyncIterable<T>,
  atOnce: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const running = new Set<Promise<void>>();
  let failure: { error: unknown } | null = null;
  try {
    for await (const item of items) {
      const one: Promise<void> = work(item)
        .catch((error) => {
          failure ??= { error };
        })
        .finally(() => running.delete(one));
      running.add(one);
      if (running.size >= atOnce) await Promise.race(running);
      if (failure) break;
    }
  } finally {
    await Promise.all(running);
  }
  if (failure) throw (failure as { error: unknown }).error;
}

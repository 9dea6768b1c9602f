import { listPages } from "../objects/list-all.ts";
import type { ObjectStore } from "../objects/store.ts";
import {
  afterSegment,
  GENERATIONS,
  type GenerationName,
  parseGeneration,
  parseSecrets,
  parseSegment,
  parseSnapshot,
  SECRETS,
  type SecretsName,
  type SegmentName,
  SNAPSHOTS,
  type SnapshotName,
  segmentsOf,
} from "./names.ts";

type Lister = Pick<ObjectStore, "list">;

/** Oldest first. */
export const listGenerations = (store: Lister): Promise<GenerationName[]> => all(store, GENERATIONS, parseGeneration);

/** Snapshots of all generations, oldest first. */
export async function listSnapshots(store: Lister): Promise<SnapshotName[]> {
  return (await all(store, SNAPSHOTS, parseSnapshot)).toSorted((a, b) => a.at - b.at);
}

/** Oldest first. */
export const listSecrets = (store: Lister): Promise<SecretsName[]> => all(store, SECRETS, parseSecrets);

/** Segments of a generation after `number` (from the first one with -1), in order, page by page. */
export async function* listSegments(store: Lister, generation: string, number: number): AsyncGenerator<SegmentName[]> {
  const after = number < 0 ? {} : { after: afterSegment(generation, number) };
  for await (const objects of listPages(store, segmentsOf(generation), after))
    yield objects.map(({ key }) => parseSegment(key)).filter((name) => name !== null);
}

async function all<T>(store: Lister, prefix: string, parse: (key: string) => T | null): Promise<T[]> {
  const found: T[] = [];
  for await (const objects of listPages(store, prefix))
    found.push(...objects.map(({ key }) => parse(key)).filter((name) => name !== null));
  return found;
}

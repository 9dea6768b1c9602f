import type { Collection } from "#web/console/types.ts";

/** A visible row of the tree. */
export type Node = {
  collection: Collection;
  /** 1 for a root. */
  level: number;
  position: number;
  siblings: number;
  isExpanded: boolean;
  hasChildren: boolean;
};

/** Children by parent, in the order of the list. A collection whose parent is not listed is a root. */
export function childrenOf(collections: readonly Collection[]): ReadonlyMap<number | null, Collection[]> {
  const known = new Set(collections.map(({ id }) => id));
  return Map.groupBy(collections, ({ parent_id }) => (parent_id !== null && known.has(parent_id) ? parent_id : null));
}

/** The rows of a tree in which some collections are expanded. Without recursion: nesting is not limited. */
export function visibleNodes(
  children: ReadonlyMap<number | null, Collection[]>,
  expanded: ReadonlySet<number>,
): Node[] {
  const nodes: Node[] = [];
  const trail = [{ all: children.get(null) ?? [], next: 0 }];
  for (let level = trail.at(-1); level; level = trail.at(-1)) {
    const collection = level.all[level.next++];
    if (!collection) {
      trail.pop();
      continue;
    }
    const below = children.get(collection.id) ?? [];
    const isExpanded = below.length > 0 && expanded.has(collection.id);
    nodes.push({
      collection,
      level: trail.length,
      position: level.next,
      siblings: level.all.length,
      isExpanded,
      hasChildren: below.length > 0,
    });
    if (isExpanded) trail.push({ all: below, next: 0 });
  }
  return nodes;
}

/** The collection and those below it, which cannot become its parent. */
export function withDescendants(children: ReadonlyMap<number | null, Collection[]>, id: number): Set<number> {
  const found = new Set([id]);
  for (const each of found) for (const child of children.get(each) ?? []) found.add(child.id);
  return found;
}

export function ancestorsOf(collections: readonly Collection[], id: number): number[] {
  const parents = new Map(collections.map((each) => [each.id, each.parent_id]));
  const found = new Set<number>();
  for (let at = parents.get(id); at !== undefined && at !== null && !found.has(at); at = parents.get(at)) found.add(at);
  return [...found];
}

/** Names in a path; the nearest ones of a deep collection. */
const NAMES = 6;

export function pathsOf(collections: readonly Collection[]): { id: number; path: string }[] {
  const known = new Map(collections.map((each) => [each.id, each]));
  return collections.map((collection) => {
    const names: string[] = [];
    for (let at: Collection | undefined = collection; at; at = known.get(at.parent_id ?? 0)) {
      if (names.length === NAMES) {
        names.push("…");
        break;
      }
      names.push(at.name);
    }
    return { id: collection.id, path: names.reverse().join(" / ") };
  });
}

/** A slug from a name: its Latin letters and digits. Empty when it has none. */
export const slugOf = (name: string) =>
  name
    .normalize("NFKD")
    .replaceAll(/\p{M}/gu, "")
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, "-")
    .replace(/^-/, "")
    .slice(0, 90)
    .replace(/-$/, "");

import type { App } from "#app.ts";
import { pacer } from "#lib/base";
import type { Caller } from "#platform/http/caller.ts";
import type { SizedRow } from "#storage/db/row-bytes.ts";
import { type CollectionCursor, type CollectionEntry, cursorOf, listEntries, readEntries } from "./queries.ts";
import { toCollection } from "./schema.ts";

const PAGE = 500;

/** The entries of the tree, each before its children. Nothing else of the collections is in memory. */
async function readTree(app: App, caller: Caller, tenantId: number | undefined): Promise<Map<number, Node>> {
  const below = new Map<number | null, CollectionEntry[]>([[null, []]]);
  const known = new Map<number, CollectionEntry>();
  const pace = pacer();
  for (let after: CollectionCursor | undefined, more = true; more; ) {
    const page = await listEntries(app, caller, { tenantId, limit: PAGE, after });
    more = page.length === PAGE;
    for (const entry of page) {
      after = cursorOf(entry);
      // A collection that was moved during the read would appear twice.
      if (!known.has(entry.id)) known.set(entry.id, entry);
    }
    await pace();
  }
  for (const entry of known.values()) {
    // A collection whose parent was deleted during the read must not be lost.
    const parent = entry.parentId !== null && known.has(entry.parentId) ? entry.parentId : null;
    const siblings = below.get(parent);
    if (siblings) siblings.push(entry);
    else below.set(parent, [entry]);
    await pace();
  }
  const nodes = new Map<number, Node>();
  const trail = [{ entries: below.get(null) ?? [], next: 0 }];
  for (let level = trail.at(-1); level; level = trail.at(-1)) {
    const entry = level.entries[level.next++];
    if (!entry) trail.pop();
    else {
      nodes.set(entry.id, { id: entry.id, bytes: entry.bytes, parent: entry.parentId });
      trail.push({ entries: below.get(entry.id) ?? [], next: 0 });
    }
    await pace();
  }
  return nodes;
}

type Node = SizedRow & { parent: number | null };

/** Serializes the tree as JSON without recursion: older trees may have any number of levels, but the stack has not. */
export async function* treeJson(app: App, caller: Caller, tenantId: number | undefined): AsyncGenerator<string> {
  const nodes = await readTree(app, caller, tenantId);
  /** The collections whose children are being written. */
  const open: number[] = [];
  yield "[";
  for await (const rows of readEntries(app, [...nodes.values()]))
    for (const row of rows) {
      // The parent was deleted during the read: -1, so the collection is a root.
      const level = open.lastIndexOf(nodes.get(row.id)?.parent ?? -1) + 1;
      // The first child of the collection before it, or the first of all.
      const isFirst = level === open.length;
      yield isFirst ? "" : `${"]}".repeat(open.length - level)},`;
      yield `${JSON.stringify(toCollection(app.baseUrl(), row)).slice(0, -1)},"children":[`;
      open.splice(level, open.length, row.id);
    }
  yield `${"]}".repeat(open.length)}]`;
}
